/** Converts the stored answer of a held call back into the platform's own form. */
import { memberTexts } from '../../json/member-texts.ts';
import { readStoredResult } from '../approvals/held-result.ts';

/** `maskedBy`: names of the rules that masked something in it. `followed`: the host that a redirect was followed to. */
export type StoredAnswer = {
  status: number;
  headers: Record<string, string | string[]>;
  body: Buffer;
  maskedBy?: readonly string[] | undefined;
  followed?: string | undefined;
};

/** @param result JSON text, as sealed. Undefined when only its beginning was kept. */
export function storedAnswer(result: string): StoredAnswer | undefined {
  const { status, encoding, headers = {}, content_type, truncated, raw, followed } = readStoredResult(result);
  if (raw?.bytes !== undefined)
    return { status, headers: raw.headers, body: Buffer.from(raw.bytes, 'base64'), followed };
  if (truncated) return undefined;
  // The platform's original text, so that numbers keep their digits.
  const data = memberTexts(result)?.get('data') ?? 'null';
  const coding = encoding === 'base64' ? encoding : 'utf8';
  if (raw) {
    const isString = raw.isText || encoding === 'base64';
    const body = Buffer.from(isString ? String(JSON.parse(data)) : data, coding);
    return { status, headers: raw.headers, body, maskedBy: raw.masked_by, followed };
  }
  const body = bodyOf(data, encoding, content_type);
  const type = body.length > 0 && { 'content-type': content_type ?? 'application/json' };
  return { status, headers: { ...headers, ...type }, body, followed };
}

/** Returns the body from which `data` was made. @param type its media type */
export function bodyOf(data: string, encoding: string | undefined, type: string | undefined): Buffer {
  if (data === 'null') return Buffer.alloc(0);
  const isText = data.startsWith('"');
  if (encoding === 'base64') return Buffer.from(String(JSON.parse(data)), 'base64');
  const isJson = type === undefined || type.endsWith('/json') || type.endsWith('+json');
  return Buffer.from(isText && !isJson ? String(JSON.parse(data)) : data);
}
