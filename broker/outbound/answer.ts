/** What an agent is given of an upstream's answer: always JSON, never the credential (decisions, Calling; BD-15, CX-*). */
import { isUtf8 } from 'node:buffer';
import { isDeeperThan, isJson, redactJson } from './json-text.ts';
import type { SecretNeedles } from './needles.ts';

export type ReadAnswer =
  | {
      kind: 'data';
      /** JSON text: of a JSON answer the original, of any other text a JSON string, of bytes a base64 string, or `null`. */
      data: string;
      encoding?: 'base64';
      /** Whether the credential was in the answer and was replaced. Goes into `_meta` and the audit row. */
      redacted: boolean;
      /** `type/subtype` in lower case, when the upstream named a well-formed one. */
      contentType?: string;
      /** Size of the body as it came, inflated. */
      bytes: number;
      /** Of a redirect: where it points, without the query, which may be a credential of its own. */
      location?: string;
    }
  /** The credential is in an answer in which it cannot be replaced (CX-08). Nothing of it may be shown. */
  | { kind: 'blocked'; contentType?: string; bytes: number };

/** What `readAnswer` looks at of an answer. */
type Received = { status: number; headers: Readonly<Record<string, string | string[]>>; body: Buffer };

/** Deeper JSON is given as a string: it parses here, but breaks readers that recurse. */
const MAX_DEPTH = 256;
const MAX_LOCATION = 2_048;

/** Types beside `text/*`, `+json` and `+xml` whose bodies are text. */
const TEXT_TYPES = new Set(
  `application/csv application/ecmascript application/graphql application/javascript application/jsonl application/json-seq
  application/ld+json application/ndjson application/sql application/toml application/x-javascript application/x-ndjson
  application/x-sh application/x-www-form-urlencoded application/x-yaml application/xml application/yaml`.split(/\s+/),
);

/** Turns an answer into what may be shown. The result is valid JSON whatever came; nothing is thrown. */
export function readAnswer(answer: Received, needles: SecretNeedles): ReadAnswer {
  const { body } = answer;
  const header = first(answer.headers['content-type']) ?? '';
  const type = essence(header);
  const contentType = type === undefined || needles.inText(type) ? {} : { contentType: type };
  const location = readLocation(answer, needles);
  const facts = { ...contentType, bytes: body.length };
  const shown = {
    kind: 'data' as const,
    ...facts,
    ...(location.text === undefined ? {} : { location: location.text }),
  };

  if (body.length === 0 || answer.status === 204 || answer.status === 304) {
    return { ...shown, data: 'null', redacted: location.redacted };
  }
  if (!isText(type, body)) {
    if (needles.inBytes(body)) return { kind: 'blocked', ...facts };
    return { ...shown, data: `"${body.toString('base64')}"`, encoding: 'base64', redacted: location.redacted };
  }
  const { text, isWide } = decode(body, header);
  // Text with NULs may be UTF-16 under another name, where the search would not see the credential.
  if (text.includes('\0') && needles.inText(text.replaceAll('\0', ''))) return { kind: 'blocked', ...facts };
  const isJsonType = type === undefined || type.endsWith('/json') || type.endsWith('+json');
  const clean = isJsonType ? redactJson(text, needles) : needles.redact(text);
  // Bytes that are no UTF-16 make other characters, which whoever gets them can turn back.
  if (isWide && (needles.inUtf8(body) || needles.inBytes(Buffer.from(clean, 'utf16le'))))
    return { kind: 'blocked', ...facts };
  const keep = isJsonType && isJson(clean) && !isDeeperThan(clean, MAX_DEPTH);
  return { ...shown, data: keep ? clean : JSON.stringify(clean), redacted: clean !== text || location.redacted };
}

function first(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

/** RFC 9110 §8.3.1; undefined when the header is not a media type. */
function essence(header: string): string | undefined {
  const type = header.split(';', 1)[0]!.trim().toLowerCase();
  return /^[a-z0-9!#$&^_.+-]{1,60}\/[a-z0-9!#$&^_.+-]{1,80}$/.test(type) ? type : undefined;
}

function isText(type: string | undefined, body: Buffer): boolean {
  if (type === undefined) return isUtf8(body) && !body.includes(0);
  return type.startsWith('text/') || /[+/](?:json|xml)$/.test(type) || TEXT_TYPES.has(type);
}

/** What is not valid in the charset becomes U+FFFD; an unknown charset is read as UTF-8. `isWide`: ASCII is not itself in it. */
function decode(body: Buffer, contentType: string): { text: string; isWide: boolean } {
  const charset = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(contentType)?.[1]?.toLowerCase() ?? 'utf-8';
  if (charset !== 'utf-8' && charset !== 'utf8' && charset !== 'us-ascii') {
    try {
      const decoder = new TextDecoder(charset);
      return { text: decoder.decode(body), isWide: decoder.encoding.startsWith('utf-16') };
    } catch {
      // A charset that nobody knows.
    }
  }
  const text = body.toString('utf8');
  return { text: text.startsWith('\ufeff') ? text.slice(1) : text, isWide: false };
}

function readLocation(answer: Received, needles: SecretNeedles): { text: string | undefined; redacted: boolean } {
  const header = answer.status >= 300 && answer.status < 400 ? first(answer.headers.location) : undefined;
  if (header === undefined) return { text: undefined, redacted: false };
  const clean = needles.redact(header);
  const text = clean
    .replace(/[?#].*$/s, '')
    .replace(/^([a-z][a-z0-9+.-]*:)?\/\/[^/]*@/i, '$1//')
    .replace(/[^\x21-\x7e]/g, (char) => encodeURIComponent(char));
  return { text: text.slice(0, MAX_LOCATION), redacted: clean !== header };
}
