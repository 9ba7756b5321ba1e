/** What an agent is given of an upstream's answer: always JSON, never the credential (decisions, Calling; BD-15, CX-*). */
import { isUtf8 } from 'node:buffer';
import { isJsonWithin } from '../../json/member-texts.ts';
import { readAnswerHeaders } from './answer-headers.ts';
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
      /** Those that an agent is given; see answer-headers.ts. */
      headers?: Readonly<Record<string, string>>;
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
  `application/csv application/ecmascript application/graphql application/javascript application/json application/jsonl
  application/json-seq  application/ld+json application/ndjson application/sql application/toml application/x-javascript application/x-ndjson
  application/x-sh application/x-www-form-urlencoded application/x-yaml application/xml application/yaml`.split(/\s+/),
);

/** Turns an answer into what may be shown. The result is valid JSON whatever came; nothing is thrown. */
export function readAnswer(answer: Received, needles: SecretNeedles): ReadAnswer {
  const { body } = answer;
  const header = first(answer.headers['content-type']) ?? '';
  const type = essence(header);
  const contentType =
    type === undefined || (!TEXT_TYPES.has(type) && needles.redact(type) !== type) ? {} : { contentType: type };
  const location = readLocation(answer, needles);
  const { headers, redacted: inHeaders } = readAnswerHeaders(answer.headers, needles);
  const inHead = location.redacted || inHeaders;
  const facts = { ...contentType, bytes: body.length };
  const shown = {
    kind: 'data' as const,
    ...facts,
    ...(location.text === undefined ? {} : { location: location.text }),
    ...(headers === undefined ? {} : { headers }),
  };

  if (body.length === 0 || answer.status === 204 || answer.status === 304) {
    return { ...shown, data: 'null', redacted: inHead };
  }
  if (!isText(type, body)) {
    if (needles.isIn(body)) return { kind: 'blocked', ...facts };
    return { ...shown, data: `"${body.toString('base64')}"`, encoding: 'base64', redacted: inHead };
  }
  const read = readText(body, header, needles);
  if (read === undefined) return { kind: 'blocked', ...facts };
  const { text, redacted } = read;
  const isJsonType = type === undefined || type.endsWith('/json') || type.endsWith('+json');
  const keep = isJsonType && isJsonWithin(text, MAX_DEPTH);
  return { ...shown, data: keep ? text : JSON.stringify(text), redacted: redacted || inHead };
}

/**
 * The body as text, without the credential: it is looked for in the bytes, whatever the charset makes of them, and in what
 * the charset makes of them. Undefined: it cannot be taken out.
 */
function readText(
  body: Buffer,
  contentType: string,
  needles: SecretNeedles,
): { text: string; redacted: boolean } | undefined {
  const decoder = decoderOf(contentType);
  if (decoder?.encoding.startsWith('utf-16')) return readWide(body, decoder, needles);
  const taken = needles.takeOut(body);
  // With NULs the text may be UTF-16 under another name, which cannot be mended.
  if (taken.kind === 'blocked' || (taken.kind === 'redacted' && body.includes(0))) return undefined;
  const bytes = taken.kind === 'redacted' ? taken.bytes : body;
  const text = decoder === undefined ? withoutMark(bytes.toString('utf8')) : decoder.decode(bytes);
  const clean = decoder === undefined ? text : withoutCredential(text, needles);
  return clean === undefined ? undefined : { text: clean, redacted: taken.kind === 'redacted' || clean !== text };
}

/** UTF-16, in which ASCII is not itself: bytes that are none make other characters, which whoever gets them can turn back. */
function readWide(body: Buffer, decoder: InstanceType<typeof TextDecoder>, needles: SecretNeedles) {
  const text = decoder.decode(body);
  const clean = withoutCredential(text, needles);
  if (clean === undefined) return undefined;
  const bytes = Buffer.from(clean, 'utf16le');
  const asIs = Buffer.from(body.map((byte) => byte || 1));
  if (needles.isIn(asIs) || needles.isIn(bytes) || needles.isIn(bytes.swap16())) return undefined;
  return { text: clean, redacted: clean !== text };
}

/** Undefined: it cannot be taken out. */
function withoutCredential(text: string, needles: SecretNeedles): string | undefined {
  const taken = needles.takeOut(Buffer.from(text));
  if (taken.kind === 'absent') return text;
  return taken.kind === 'blocked' ? undefined : taken.bytes.toString();
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
  return type === undefined ? isUtf8(body) && !body.includes(0) : isTextual(type);
}

/** Whether a `Content-Type` header names a kind of text. */
export function isTextType(header: string | string[] | undefined): boolean {
  const type = essence(first(header) ?? '');
  return type !== undefined && isTextual(type);
}

function isTextual(type: string): boolean {
  return type.startsWith('text/') || /[+/](?:json|xml)$/.test(type) || TEXT_TYPES.has(type);
}

/** What is not valid in a charset becomes U+FFFD. Undefined for UTF-8, and for an unknown charset, which is read as UTF-8. */
function decoderOf(contentType: string): InstanceType<typeof TextDecoder> | undefined {
  const charset = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(contentType)?.[1]?.toLowerCase() ?? 'utf-8';
  if (charset === 'utf-8' || charset === 'utf8' || charset === 'us-ascii') return undefined;
  try {
    return new TextDecoder(charset);
  } catch {
    return undefined;
  }
}

function withoutMark(text: string): string {
  return text.startsWith('\ufeff') ? text.slice(1) : text;
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
