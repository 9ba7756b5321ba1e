/** What the decision can know of a raw body: the members of JSON and forms, multipart included; otherwise that it was not read. */
import { isUtf8 } from 'node:buffer';
import { parseStrictJson, parseStrictJsonInParts, type StrictJson } from '../../json/strict.ts';
import { type JsonObject, UnreadBody } from '../policy/facts.ts';
import type { NameList } from '../policy/names.ts';
import type { BodyKind } from '../policy/platform-rules.ts';
import { LONG_BODY, NO_ROOM, type Parsing, UNLIMITED } from '../runtime/long-bodies.ts';
import { inSlices, runToEnd } from '../runtime/pace.ts';
import { isUtf8Name } from '../wire/media-type.ts';
import { methodMember } from './method-json.ts';
import { isTakenForForm, isTakenForJson, methodField, whyNotSent } from './method-search.ts';
import { parseForm } from './parse-form.ts';
import { parseMultipart } from './parse-multipart.ts';

/** Bodies up to this many bytes are read; longer ones are streamed (docs/decisions/21-raw-requests.md). */
export const MAX_READ_BYTES = 1024 * 1024;

/** `code`: why a body is refused that may be well-formed; `invalid_request` by default. */
export type JudgedBody =
  | { ok: true; judged: JsonObject | UnreadBody | undefined }
  | { ok: false; detail: string; code?: 'too_many_calls' };

const CODED = new UnreadBody('a body with a Content-Encoding is not read');
export const TOO_LONG = new UnreadBody(`a body of more than ${MAX_READ_BYTES / 1024} KiB is not read`);

/** Returns why a body of this type and encoding is not read, whatever it contains; undefined when it is read. */
export function whyUnread({ 'content-type': type, 'content-encoding': coding }: BodyHeaders): UnreadBody | undefined {
  if (isCoded(coding)) return CODED;
  const { essence, charsets } = mediaType(type);
  if (essence === undefined) return new UnreadBody('a body without a plain Content-Type is not read');
  if (charsets.length > 1 || !charsets.every(isUtf8Parameter))
    return new UnreadBody('a body that is not in UTF-8 is not read');
  return isJson(essence) || essence === FORM || essence === PARTS
    ? undefined
    : new UnreadBody(`a body of ${essence} is not read`, { isOpaque: !MAY_HAVE_MEMBERS.test(essence) });
}

type BodyHeaders = Readonly<Record<string, string>>;
const FORM = 'application/x-www-form-urlencoded';
const PARTS = 'multipart/form-data';
/** A media type parameter has no blanks around its `=` (RFC 9110 section 5.6.6), but some readers accept them. */
function isUtf8Parameter(parameter: string): boolean {
  const [, quoted, bare] = /^charset=(?:"([^"]*)"|([^"]*))$/i.exec(parameter) ?? [];
  return isUtf8Name(quoted ?? bare ?? '');
}
/** Types that some server may parse members from, although the broker does not read them. */
const MAY_HAVE_MEMBERS = /json|form|multipart/;
const isJson = (essence: string): boolean => essence === 'application/json' || essence.endsWith('+json');

/** Whether the body's type is a form, so that all its values are text. */
export const isFormType = ({ 'content-type': type }: BodyHeaders): boolean => {
  const { essence } = mediaType(type);
  return essence === FORM || essence === PARTS;
};

/**
 * What is known of the operation that a body is for. `asRead`: the type by which some server reads it (`typeAsRead`). `refused`: field
 * names that the platform accepts from no agent. `isStored`: the body is a file that the platform stores, whatever its type. `kinds`: the
 * body kinds that the platform takes there; undefined when unknown.
 */
export type BodyOf = {
  asRead?: string;
  refused?: NameList | undefined;
  isStored?: boolean;
  kinds?: readonly BodyKind[];
};

/**
 * Whether a body is a file that its operation only stores, with no refused names: it may then be any JSON, or malformed (comments,
 * duplicate names), because no server takes another method from a PUT of JSON. A form is always searched.
 */
export const isKept = (asRead: string, { isStored, refused }: BodyOf): boolean =>
  isStored === true && refused === undefined && !isTakenForForm(asRead);

/**
 * Whether the operation accepts nothing but files, which some clients send with the type of JSON (`@google/genai`): malformed JSON is then searched for a
 * method and otherwise not read, instead of refused.
 */
const isFile = ({ kinds = [] }: BodyOf): boolean =>
  kinds.includes('bytes') && kinds.every((kind) => kind === 'bytes' || kind === 'text');

/**
 * Reads a whole body. `ok: false` when it claims to be JSON but is malformed, is a form that looks like JSON, names a method, or contains a
 * refused field in a part that is not judged or cannot be searched. `detail`: a sentence for a 400.
 */
export function judgeBody(headers: BodyHeaders, bytes: Buffer, of: BodyOf = {}, count = UNLIMITED.count): JudgedBody {
  const judged = runToEnd(judgeUnlessJson(headers, bytes, of));
  if (typeof judged !== 'string') return judged;
  const parsed = parseStrictJson(judged);
  if (parsed.ok) count(parsed.bytes);
  return runToEnd(judgeJson(parsed, typeOf(headers, of), of));
}

/** In bytes. Parsing a name of a form costs several times as much as a name in JSON. */
export const LONG_FORM = 8 * 1024;

/** As judgeBody, but parses a long body in slices. */
export function judgeInTurns(
  headers: BodyHeaders,
  bytes: Buffer,
  parsing: Parsing,
  of: BodyOf = {},
): JudgedBody | Promise<JudgedBody> {
  if (bytes.length <= (isTakenForForm(typeOf(headers, of)) ? LONG_FORM : LONG_BODY))
    return judgeBody(headers, bytes, of, parsing.count);
  return parsing.inTurn(async (rest, takeRoom) => {
    const judged = await inSlices(judgeUnlessJson(headers, bytes, of), rest);
    if (typeof judged !== 'string') return judged;
    const parsed = await parseStrictJsonInParts(judged, {}, rest, takeRoom);
    if (!parsed) return { ok: false, code: 'too_many_calls', detail: NO_ROOM };
    await rest();
    return await inSlices(judgeJson(parsed, typeOf(headers, of), of), rest);
  });
}

/** Returns the text of a JSON body, or what is known of any other body. Yields between its steps. */
function* judgeUnlessJson(headers: BodyHeaders, bytes: Buffer, of: BodyOf): Generator<void, JudgedBody | string> {
  if (bytes.length === 0) return { ok: true, judged: undefined };
  const asRead = typeOf(headers, of);
  const unsearched = whyUnsearchable(headers, of);
  if (unsearched !== undefined) return { ok: false, detail: unsearched };
  const unread = whyUnread(headers);
  // Members of JSON that is read are checked later (judgeJson).
  const kept = isKept(asRead, of);
  const isSearched = ((unread || isFile(of)) && !kept) || isTakenForForm(asRead);
  const name = isSearched ? yield* methodField(asRead, bytes, of.refused) : undefined;
  if (name !== undefined) return { ok: false, detail: whyNotSent(name, of.refused) };
  if (unread) return { ok: true, judged: unread };
  if (mediaType(headers['content-type']).essence === PARTS)
    return { ok: true, judged: parseMultipart(headers['content-type'] ?? '', bytes) };
  // Readers differ on invalid UTF-8: some drop the bytes, others decode overlong forms into letters.
  if (!isUtf8(bytes))
    return kept || isFile(of)
      ? { ok: true, judged: new UnreadBody('a file that is not in UTF-8 is not read') }
      : { ok: false, detail: 'The body is not UTF-8. Send it in UTF-8, or as another type.' };
  const text = bytes.toString('utf8');
  if (!isFormType(headers)) return text;
  if (JSON_BEGINS.test(text)) return { ok: false, detail: JSON_AS_FORM };
  return { ok: true, judged: of.kinds?.includes('form') === false ? NO_FORM_TAKEN : parseForm(text) };
}

/**
 * A JSON platform may read the body as JSON whatever its type, and lenient readers skip a leading comment, which could hide form fields.
 */
const NO_FORM_TAKEN = new UnreadBody(
  'a form is not read: the entry of the platform does not say that it takes one (`body`, `raw_bodies` or `bodies`)',
);

/** A platform that takes only JSON reads this as JSON whatever its type. */
const JSON_BEGINS = /^[\s\uFEFF]*[{[]/;
const JSON_AS_FORM =
  'The body looks like JSON, and its Content-Type says that it is a form, as curl does by default. Send Content-Type: application/json.';

const typeOf = (headers: BodyHeaders, { asRead = headers['content-type'] ?? '' }: BodyOf): string => asRead;

/**
 * Returns why a form or JSON body is refused because its fields cannot be searched, although the platform or a server in front of it may
 * read them: with a Content-Encoding, or in a charset whose ASCII letters are other bytes (Tomcat reads a form in IBM037). A field could
 * name a method. Undefined when the body is accepted, such as JSON that an operation only stores (an S3 object).
 */
export function whyUnsearchable(headers: BodyHeaders, of: BodyOf): string | undefined {
  const asRead = typeOf(headers, of);
  const isForm = isTakenForForm(asRead);
  if (!isForm && (of.isStored === true || !isTakenForJson(asRead))) return undefined;
  const what = isForm ? 'A form' : 'JSON';
  if (isCoded(headers['content-encoding']))
    return `${what} is accepted only without a Content-Encoding, because a field that names a method could not be found in it. Send it unencoded, without the header.`;
  return mediaType(asRead).charsets.every((one) => HAS_ASCII.test(one))
    ? undefined
    : `${what} is accepted in UTF-8, or in another charset that extends ASCII, such as ISO-8859-1.`;
}

const HAS_ASCII = /^charset="?(?:utf-?8|(?:us-)?ascii|latin-?1|iso-8859-\d{1,2}|(?:windows|cp)-?125\d)"?$/i;

const isCoded = (coding = 'identity'): boolean => coding.toLowerCase() !== 'identity';

/** Yields between its steps. */
function* judgeJson(parsed: StrictJson, asRead: string, of: BodyOf): Generator<void, JudgedBody> {
  const kept = isKept(asRead, of);
  if (!parsed.ok)
    return kept || isFile(of)
      ? { ok: true, judged: new UnreadBody('a JSON file that rules cannot check is not read') }
      : { ok: false, detail: `The body is not JSON that rules can check: ${parsed.error}` };
  const { value } = parsed;
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (isObject) {
    const detail = kept ? undefined : yield* methodMember(value);
    return detail === undefined ? { ok: true, judged: value } : { ok: false, detail };
  }
  const items = Array.isArray(value) ? { items: value } : {};
  return { ok: true, judged: new UnreadBody('a JSON body that is no object is not read', items) };
}

/**
 * Parses a media type (RFC 9110 section 8.3.1) in lower case. `charsets`: all parameters that some reader may take for a charset, as
 * written.
 */
function mediaType(header = ''): { essence: string | undefined; charsets: string[] } {
  const [written = '', ...parameters] = header.split(';');
  const essence = written.trim().toLowerCase();
  const charsets = parameters.map((one) => one.trim()).filter((one) => /^charset/i.test(one));
  return {
    essence: /^[a-z0-9!#$&^_.+-]{1,60}\/[a-z0-9!#$&^_.+-]{1,80}$/.test(essence) ? essence : undefined,
    charsets,
  };
}
