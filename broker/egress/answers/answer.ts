/** Turns an upstream's response into the agent's answer: always JSON, never with the credential (BD-15, CX-*). */
import { isUtf8 } from 'node:buffer';
import { isJsonWithin } from '../../../json/member-texts.ts';
import type { Mask } from '../../policy/masks/mask.ts';
import { charsetsOf, essenceOf, isUtf8Name } from '../../wire/media-type.ts';
import type { CredentialPatterns } from '../credential-search/patterns.ts';
import { bytesOfHeader, readAnswerHeaders } from './answer-headers.ts';
import { maskedHeaders, maskingOf, maskText } from './mask-answer.ts';
import { type Masking, maskValues } from './mask-json.ts';

/** `Text`: a string, or UTF-8 bytes. */
export type ReadAnswer<Text = string> =
  | {
      kind: 'data';
      /** JSON text: the original of a JSON answer, a JSON string for other text, a base64 string for binary data, or `null`. */
      data: Text;
      encoding?: 'base64';
      /** The body is text but not JSON, and `data` is a JSON string with it. */
      isText?: true;
      /** Whether the credential was found and replaced. Goes into `_meta` and the audit row. */
      redacted: boolean;
      /** `type/subtype` in lower case, when the upstream named a well-formed one. */
      contentType?: string;
      /** Size of the body after decompression. */
      bytes: number;
      /** Target of a redirect, without its query, which may hold a credential of the platform. */
      location?: string;
      /** Headers for the agent; see answer-headers.ts. */
      headers?: Readonly<Record<string, string>>;
      /** Number of masked members and values; absent when no mask applies to this answer. */
      masked?: number;
    }
  /**
   * The credential was found where it cannot be redacted (CX-08), or a mask cannot be applied (`not_masked`). No part of the answer may be
   * shown.
   */
  | { kind: 'blocked'; cause: BlockedCause; contentType?: string; bytes: number };

export type BlockedCause = 'credential_found' | 'not_masked';

/** What is masked in an answer. `isToolResult`: the answer is the result of an MCP tool. */
export type AnswerMask = Omit<Mask, 'rules'> & { isToolResult?: boolean };

/**
 * What /proxy returns for an answer stored for its client: these headers, and as body `bytes`, or else the result of `readAnswer`: text
 * (`isText`), base64 or JSON.
 */
export type RawAnswer = {
  headers: Readonly<Record<string, string | string[]>>;
  isText?: true | undefined;
  bytes?: Buffer | undefined;
  /** Whether headers that held the credential were dropped. */
  redacted: boolean;
  /** Names of the rules that masked something in it. */
  maskedBy?: readonly string[] | undefined;
};

/** The part of a response that `readAnswer` uses. */
export type Received = { status: number; headers: Readonly<Record<string, string | string[]>>; body: Buffer };

/** Deeper JSON is returned as a string: it parses here, but would overflow recursive parsers. */
const MAX_DEPTH = 256;
const MAX_LOCATION = 2_048;

/** Textual types other than `text/*`, `+json` and `+xml`. */
const TEXT_TYPES = new Set(
  `application/csv application/ecmascript application/graphql application/javascript application/json application/jsonl
  application/json-seq  application/ld+json application/ndjson application/sql application/toml application/x-javascript application/x-ndjson
  application/x-sh application/x-www-form-urlencoded application/x-yaml application/xml application/yaml`.split(/\s+/),
);

/** Turns a response into what may be shown. Returns valid JSON for any input; never throws. */
export function readAnswer(answer: Received, patterns: CredentialPatterns, mask?: AnswerMask): ReadAnswer {
  const { body } = answer;
  const masking = mask && maskingOf(mask, mask.isToolResult);
  const header = first(answer.headers['content-type']) ?? '';
  const type = essence(header);
  const contentType =
    type === undefined || (!TEXT_TYPES.has(type) && patterns.redact(type) !== type) ? {} : { contentType: type };
  const location = readLocation(answer, patterns);
  const { headers: shownHeaders, redacted: inHeaders } = readAnswerHeaders(answer.headers, patterns);
  const headersOf = (hasAny: boolean) =>
    shownHeaders && { headers: masking ? maskedHeaders(shownHeaders, masking, hasAny) : shownHeaders };
  const inHead = location.redacted || inHeaders;
  const facts = { ...contentType, bytes: body.length };
  const shown = {
    kind: 'data' as const,
    ...facts,
    ...(location.text === undefined ? {} : { location: masked(location.text, masking) }),
    ...headersOf(false),
  };

  if (body.length === 0 || answer.status === 204 || answer.status === 304) {
    return { ...shown, data: 'null', redacted: inHead };
  }
  if (masking && isUnclear(answer, { type, header }, masking))
    return { kind: 'blocked', cause: 'not_masked', ...facts };
  if (!isText(type, body) || isForeignJson(type, header, body)) {
    if (patterns.isIn(body)) return { kind: 'blocked', cause: 'credential_found', ...facts };
    return { ...shown, data: `"${body.toString('base64')}"`, encoding: 'base64', redacted: inHead };
  }
  const read = readText(body, header, patterns);
  if (read === undefined) return { kind: 'blocked', cause: 'credential_found', ...facts };
  const { redacted } = read;
  const isJson = isJsonType(type) && isJsonWithin(read.text, MAX_DEPTH);
  const left = masking ? maskText(read.text, { type, isJson }, masking) : { text: read.text, count: undefined };
  if (left === undefined) return { kind: 'blocked', cause: 'not_masked', ...facts };
  const { text, count } = left;
  return {
    ...shown,
    // The original length would reveal what was masked.
    ...(count && { bytes: Buffer.byteLength(text), ...headersOf(true) }),
    data: isJson ? text : JSON.stringify(text),
    ...(!isJson && { isText: true }),
    redacted: redacted || inHead,
    ...(count !== undefined && { masked: count }),
  };
}

/** Whether it cannot be determined what the answer contains, so that a mask cannot be applied. */
function isUnclear(
  { status, body }: Received,
  { type, header }: { type: string | undefined; header: string },
  masking: Masking,
): boolean {
  // A partial body (206) may begin in the middle of a masked member.
  if (status === 206 || isForeignJson(type, header, body)) return true;
  // A non-strict mask applies to JSON only, including JSON within a script declared as binary.
  if (!masking.isStrict)
    return (
      !isText(type, body) && isUtf8(body) && maskText(body.toString(), { type, isJson: false }, masking)?.count !== 0
    );
  if (!isText(type, body)) return true;
  const isWide = decoderOf(header)?.encoding.startsWith('utf-16');
  // Text decoded with the wrong one of UTF-16 and UTF-8 hides its content from the mask, and can be converted back.
  return isWide ? maskValues(body.toString('latin1'), masking.values).count > 0 : body.includes(0) || hasWideMark(body);
}

const hasWideMark = ([one, two]: Buffer): boolean => (one === 0xff && two === 0xfe) || (one === 0xfe && two === 0xff);

const masked = (text: string, masking: Masking | undefined): string =>
  masking ? maskValues(text, masking.values).text : text;

/**
 * Returns the body as text with the credential redacted. It is searched for in the raw bytes and in the decoded text, because a charset can
 * hide it. Undefined when it cannot be redacted.
 */
function readText(
  body: Buffer,
  contentType: string,
  patterns: CredentialPatterns,
): { text: string; redacted: boolean } | undefined {
  const decoder = decoderOf(contentType);
  if (decoder?.encoding.startsWith('utf-16')) return readWide(body, decoder, patterns);
  const taken = patterns.redactBytes(body);
  // NULs may mean UTF-16 declared as something else, in which replacing bytes would break characters.
  if (taken.kind === 'blocked' || (taken.kind === 'redacted' && body.includes(0))) return undefined;
  const bytes = taken.kind === 'redacted' ? taken.bytes : body;
  const text = decoder === undefined ? withoutMark(bytes.toString('utf8')) : decoder.decode(bytes);
  const clean = decoder === undefined ? text : withoutCredential(text, patterns);
  return clean === undefined ? undefined : { text: clean, redacted: taken.kind === 'redacted' || clean !== text };
}

/**
 * UTF-16 encodes ASCII with two bytes per character. A credential in raw bytes decodes to other characters, which could be encoded back.
 */
function readWide(body: Buffer, decoder: InstanceType<typeof TextDecoder>, patterns: CredentialPatterns) {
  const text = decoder.decode(body);
  const clean = withoutCredential(text, patterns);
  if (clean === undefined) return undefined;
  const bytes = Buffer.from(clean, 'utf16le');
  const asIs = Buffer.from(body.map((byte) => byte || 1));
  if (patterns.isIn(asIs) || patterns.isIn(bytes) || patterns.isIn(bytes.swap16())) return undefined;
  return { text: clean, redacted: clean !== text };
}

/** Redacts the credential; undefined when that is not possible. */
function withoutCredential(text: string, patterns: CredentialPatterns): string | undefined {
  const taken = patterns.redactBytes(Buffer.from(text));
  if (taken.kind === 'absent') return text;
  return taken.kind === 'blocked' ? undefined : taken.bytes.toString();
}

/** The `Content-Type` of a text that was converted to UTF-8 from any charset. */
export const inUtf8 = (contentType: string): string =>
  /charset/i.test(contentType) ? contentType.replace(/;.*/s, '; charset=utf-8') : contentType;

function first(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

/** Parses a media type (RFC 9110 §8.3.1); undefined when the header is malformed. */
function essence(header: string): string | undefined {
  const type = essenceOf(header);
  return /^[a-z0-9!#$&^_.+-]{1,60}\/[a-z0-9!#$&^_.+-]{1,80}$/.test(type) ? type : undefined;
}

function isText(type: string | undefined, body: Buffer): boolean {
  return type === undefined ? isUtf8(body) && !body.includes(0) : isTextual(type);
}

const isJsonType = (type: string | undefined): boolean => type === undefined || /[/+]json$/.test(type);

/** Whether JSON is in a charset that it does not declare: decoding it as UTF-8 would change its values unnoticed. */
const isForeignJson = (type: string | undefined, header: string, body: Buffer): boolean =>
  isJsonType(type) && decoderOf(header) === undefined && !isUtf8(body);

/** Whether a `Content-Type` header names a textual type. */
export function isTextType(header: string | string[] | undefined): boolean {
  const type = essence(first(header) ?? '');
  return type !== undefined && isTextual(type);
}

function isTextual(type: string): boolean {
  return type.startsWith('text/') || /[+/](?:json|xml)$/.test(type) || TEXT_TYPES.has(type);
}

/**
 * The decoder of a charset; it replaces invalid bytes by U+FFFD. Undefined for UTF-8, and for an unknown charset, which is read as UTF-8.
 */
function decoderOf(contentType: string): InstanceType<typeof TextDecoder> | undefined {
  const [charset] = charsetsOf(contentType);
  if (charset === undefined || isUtf8Name(charset)) return undefined;
  try {
    return new TextDecoder(charset);
  } catch {
    return undefined;
  }
}

function withoutMark(text: string): string {
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}

function readLocation(answer: Received, patterns: CredentialPatterns): { text: string | undefined; redacted: boolean } {
  const header = answer.status >= 300 && answer.status < 400 ? first(answer.headers.location) : undefined;
  if (header === undefined) return { text: undefined, redacted: false };
  const clean = patterns.redact(header);
  if (patterns.isIn(bytesOfHeader(clean))) return { text: undefined, redacted: true };
  const text = clean
    .replace(/[?#].*$/s, '')
    .replace(/^([a-z][a-z0-9+.-]*:)?\/\/[^/]*@/i, '$1//')
    .replace(/[^\x21-\x7e]/g, (char) => encodeURIComponent(char));
  return { text: text.slice(0, MAX_LOCATION), redacted: clean !== header };
}
