/** The stored answer to a held call, as the platform's own again. */
import { memberTexts } from '../../json/member-texts.ts';

export type StoredAnswer = { status: number; headers: Record<string, string>; body: Buffer };

/** @param result JSON text, as sealed. Undefined: only its beginning was kept. */
export function storedAnswer(result: string): StoredAnswer | undefined {
  const {
    status,
    encoding,
    headers = {},
    content_type,
    truncated,
  } = JSON.parse(result) as {
    status: number;
    encoding?: string;
    headers?: Record<string, string>;
    content_type?: string;
    truncated?: boolean;
  };
  if (truncated) return undefined;
  // The platform's own text, so that its numbers keep their digits.
  const data = memberTexts(result)?.get('data') ?? 'null';
  const body = bodyOf(data, encoding, content_type);
  const type = body.length > 0 && { 'content-type': content_type ?? 'application/json' };
  return { status, headers: { ...headers, ...type }, body };
}

function bodyOf(data: string, encoding: string | undefined, type: string | undefined): Buffer {
  if (data === 'null') return Buffer.alloc(0);
  const isText = data.startsWith('"');
  if (encoding === 'base64') return Buffer.from(JSON.parse(data) as string, 'base64');
  const isJson = type === undefined || type.endsWith('/json') || type.endsWith('+json');
  return Buffer.from(isText && !isJson ? (JSON.parse(data) as string) : data);
}
