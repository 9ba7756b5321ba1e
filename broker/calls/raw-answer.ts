/** Stores the answer of an approved raw call, until its client fetches it, as /proxy would have passed it on. */
import { MAX_RESULT_BYTES } from '../approvals/sealed.ts';
import { inUtf8, type RawAnswer, type ReadAnswer, type Received } from '../egress/answers/answer.ts';
import { maskedHeaders } from '../egress/answers/mask-answer.ts';
import type { CredentialPatterns } from '../egress/credential-search/patterns.ts';
import type { Mask } from '../policy/masks/mask.ts';
import { passedOn } from './forward-stream.ts';

/** Copies the body of an answer before its buffer is handed to the reader; undefined when it is too long to store. */
export const bodyToKeep = ({ body }: Received): Buffer | undefined =>
  body.length <= MAX_RESULT_BYTES ? Buffer.from(body) : undefined;

/**
 * Returns what is stored of an answer beside its data. Text that is not UTF-8 would change as data, so it is stored as received, unless
 * something was redacted.
 *
 * @param body as received; undefined when it is too long to store
 * @param read the answer, redacted and masked
 */
export function rawAnswer(
  received: Pick<Received, 'headers'>,
  body: Buffer | undefined,
  read: Extract<ReadAnswer<string | Buffer>, { kind: 'data' }>,
  { patterns, mask }: { patterns: CredentialPatterns; mask: Mask | undefined },
): RawAnswer {
  const { headers, redacted } = passedOn(received.headers, patterns);
  const maskedBy = read.masked ? mask?.rules : undefined;
  const shown = mask ? maskedHeaders(headers, mask, (read.masked ?? 0) > 0) : headers;
  const { 'content-encoding': coding, 'content-length': length, ...others } = shown;
  // A HEAD answer keeps its content-length, although it has no body.
  if (body?.length === 0) return { headers: coding === undefined ? shown : others, redacted, bytes: body };
  if (read.encoding !== undefined) return { headers: others, redacted };
  const { isText, data } = read;
  const text = Buffer.from(isText ? (JSON.parse(data.toString()) as string) : data);
  if (body && text.equals(body)) return { headers: others, redacted, maskedBy, isText };
  if (body && !mask && !read.redacted) return { headers: others, redacted, bytes: body };
  const type = others['content-type'];
  return {
    headers: { ...others, ...(type !== undefined && { 'content-type': inUtf8(String(type)) }) },
    redacted,
    maskedBy,
    isText,
  };
}
