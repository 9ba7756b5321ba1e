/** Sends batches over HTTP through egress, and interprets the answer: any 2xx means that the receiver has the batch. */
import type { Answer } from '../egress/dispatcher.ts';
import { judge, type Post, post } from '../notify/post.ts';
import type { Delivered, Delivering } from './sink.ts';

/** Generous, because a batch may have some MiB. */
const TIMEOUT_MS = 30_000;
/** "Content Too Large" (RFC 9110 section 15.5.14), which proxies also return for limits of their own. */
const TOO_LARGE = 413;
/** Bytes of an answer that are read: receivers may report on each row, but the status is sufficient. */
const MAX_READ_BYTES = 48 * 1024;

type Sending = Pick<Delivering<unknown>, 'outbound' | 'sinkId' | 'now'>;

/** Posts a batch. `taken`: the answer of a receiver that accepted it. */
export async function postBatch(
  { outbound, sinkId, now }: Sending,
  request: Post,
): Promise<(Delivered & { kind: 'failed' }) | { kind: 'taken'; answer: Extract<Answer, { kind: 'answer' }> }> {
  let bytes = 0;
  const answer = await post(
    { outbound, channelId: sinkId },
    {
      ...request,
      headers: { ...request.headers, 'accept-encoding': 'identity' },
      timeoutMs: TIMEOUT_MS,
      enough: (chunk) => {
        bytes += chunk.length;
        return bytes > MAX_READ_BYTES;
      },
    },
  );
  if (answer.kind === 'answer' && answer.status >= 200 && answer.status < 300) return { kind: 'taken', answer };
  if (answer.kind === 'answer' && answer.status === TOO_LARGE) {
    const size = Buffer.byteLength(request.body);
    const why = `The receiver answered 413: a request of ${size} bytes is too large for it. Raise its limit, or that of a proxy in front of it.`;
    return { kind: 'failed', why, isTooLarge: true };
  }
  const { why, ...judged } = judge(answer, { now }) as { why: string; afterMs?: number };
  return { kind: 'failed', why, ...(judged.afterMs !== undefined && { afterMs: judged.afterMs }) };
}
