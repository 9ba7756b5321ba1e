/** An answer to an approved raw call, which is kept until its client comes for it, as its door would have passed it on. */
import { MAX_RESULT_BYTES } from '../approvals/sealed.ts';
import { inUtf8, type RawAnswer, type ReadAnswer, type Received } from '../egress/answer.ts';
import type { CredentialPatterns } from '../egress/credential-patterns.ts';
import { maskedHeaders } from '../egress/mask-answer.ts';
import type { Mask } from '../policy/mask.ts';
import { passedOn } from './forward-stream.ts';

/** Of the body of an answer, before it is given up to whoever reads it: undefined where it is too long to be kept. */
export const bodyToKeep = ({ body }: Received): Buffer | undefined =>
  body.length <= MAX_RESULT_BYTES ? Buffer.from(body) : undefined;

/**
 * What is kept of it beside its data. Text that is no UTF-8, which as data is another, is kept as it came unless something was taken out of it.
 *
 * @param body as it came; undefined: it is too long to be kept
 * @param read the answer, without the credential and masked
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
  // The length of what a HEAD does not have.
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
