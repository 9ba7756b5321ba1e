/** Unzips JSON of raw requests: `npm audit` posts it in gzip, and cannot send it otherwise. */
import { type BodyOf, MAX_READ_BYTES } from '../../calls/judge-body.ts';
import type { RawRequest } from '../../calls/raw-request.ts';
import type { CallLease } from '../../egress/call-lease.ts';
import { inflate } from '../../egress/inflate.ts';

const NOT_ZIPPED = 'The body is not what its Content-Encoding says: send it plain or gzip.';
const TOO_LONG = `JSON in gzip is accepted up to ${MAX_READ_BYTES / 1024} KiB without the encoding. Send it unencoded, without the header.`;

/**
 * Returns the request with its JSON unzipped, as it is judged and sent; any other request unchanged, such as a PUT, or one for an operation that takes files,
 * because a platform may store these with their encoding; or an error text. Counts the unzipped bytes on `lease`.
 */
export async function unzipped<Raw extends Pick<RawRequest, 'method' | 'body' | 'bodyHeaders'>>(
  raw: Raw,
  { asRead = '', kinds }: BodyOf,
  lease: Pick<CallLease, 'count'>,
): Promise<Raw | string> {
  const { body, bodyHeaders } = raw;
  const { 'content-encoding': coding = '', ...headers } = bodyHeaders;
  if (body.kind !== 'whole' || !/^(?:x-)?gzip$/i.test(coding) || !JSON_TYPE.test(asRead)) return raw;
  if (raw.method === 'PUT' || kinds?.includes('bytes') === true) return raw;
  const read = await inflate(body.bytes, ['gzip'], MAX_READ_BYTES);
  if (!read.ok) return read.code === 'too_large' ? TOO_LONG : NOT_ZIPPED;
  lease.count(read.body.length);
  return { ...raw, body: { kind: 'whole', bytes: read.body }, bodyHeaders: headers };
}

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json *(?:;|$)/i;
