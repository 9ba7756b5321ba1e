/** The body of a held call as the deciding person is shown it: the readable content, or a description of it. */

import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { isTextType } from '../egress/answer.ts';
import type { JsonObject, JsonValue } from '../policy/facts.ts';
import { actionOf, rawOf } from './held-request.ts';

/** A body that cannot be displayed: its length, its hash, and the type that the agent declares. */
export type ShownUpload = { media_type: string | null; bytes: number; sha256: string };

export type ShownBody = { body: JsonValue; upload: ShownUpload | null };

/** @param request the opened request */
export function shownBody(request: JsonObject): ShownBody {
  const { data, encoding, headers = {} } = actionOf(request);
  if (encoding !== undefined && typeof data === 'string')
    return { body: null, upload: uploadOf(Buffer.from(data, 'base64'), headers['content-type']) };
  const raw = data === undefined ? rawOf(request) : undefined;
  if (raw?.bytes === undefined) return { body: request.data ?? null, upload: null };
  const { 'content-type': type, 'content-encoding': coding } = raw.bodyHeaders;
  const isPlain = coding === undefined && isTextType(type) && isUtf8(raw.bytes);
  return isPlain ? { body: raw.bytes.toString(), upload: null } : { body: null, upload: uploadOf(raw.bytes, type) };
}

const uploadOf = (bytes: Buffer, type: string | undefined): ShownUpload => ({
  media_type: type ?? null,
  bytes: bytes.length,
  sha256: createHash('sha256').update(bytes).digest('hex'),
});
