/**
 * The body of a call written as JSON whose operation takes another kind of body than its platform does (`bodies` of the manifest): a list,
 * text, bytes, parts, or an object in the other form. The encoded body is judged as /proxy judges the same bytes.
 */
import { formProblem } from '../egress/credential-search/form.ts';
import { headsOfParts, partsProblem } from '../egress/parts.ts';
import type { LoadedFacts } from '../facts/facts.ts';
import { isBase64 } from '../policy/base64.ts';
import { bodyKinds, isStored } from '../policy/body-kinds.ts';
import type { JsonObject, JsonValue, UnreadBody } from '../policy/facts.ts';
import { isGraphql } from '../policy/operation.ts';
import type { BodyKind } from '../policy/platform-rules.ts';
import type { Parsing } from '../runtime/long-bodies.ts';
import { inSlices, runToEnd } from '../runtime/pace.ts';
import type { Action } from '../wire/action.ts';
import { type BodyOf, isFormType, isKept, judgeInTurns, LONG_FORM } from './judge-body.ts';
import { methodMemberInTurns } from './method-json.ts';
import { methodField, whyNotSent } from './method-search.ts';
import { FormTree, GAPS } from './parse-form.ts';
import { FILE_NAME, knownFile, PART_NAME, unreadParts } from './parse-multipart.ts';

/**
 * `judged`: the body as the decision sees it. `written`: how its members are encoded, or the exact bytes. `bodyHeaders`: the headers that
 * state its type.
 */
export type ActionBody = {
  judged: JsonObject | UnreadBody | undefined;
  isForm: boolean;
  bodyHeaders: Readonly<Record<string, string>>;
  written: { as: 'json' | 'form' | 'multipart' } | { as: 'bytes'; bytes: Buffer };
};

/** `given` undefined: the body is an object in the platform's default form, or absent. */
export type ReadBody = { ok: true; given: ActionBody | undefined } | { ok: false; detail: string };

const NO_JSON = 'headers: the Content-Type of a list or an object is JSON, such as application/json-patch+json';
const NO_OBJECT = 'data: must be an object';
const NAMES: Readonly<Record<BodyKind, string>> = {
  json: 'an object',
  form: 'an object',
  multipart: 'an object of parts',
  list: 'a list',
  text: 'a text',
  bytes: 'bytes (a text in base64 with `encoding`)',
};
const DEFAULT_TYPES = {
  list: 'application/json',
  text: 'text/plain; charset=utf-8',
  bytes: 'application/octet-stream',
};

/**
 * Reads the body of a call by the kinds of body that its operation takes.
 *
 * @param path the endpoint's path, normalised
 * @param parsing parses long bodies in slices
 */
export async function readActionBody(
  action: Action,
  path: string,
  platform: LoadedFacts['platform'],
  parsing: Parsing,
): Promise<ReadBody> {
  const { data, encoding, method } = action;
  const refuse = (detail: string): ReadBody => ({ ok: false, detail });
  if (encoding !== undefined && typeof data !== 'string')
    return refuse('encoding: it says that `data` is a text in base64; leave it out for anything else');
  if (data === undefined) return { ok: true, given: undefined };
  const at = { method, path };
  // A GraphQL document is always judged as JSON.
  const kinds = platform && !isGraphql(platform.rules, at) ? bodyKinds(platform.rules, at) : undefined;
  const of = platform && {
    refused: platform.rules.refused.body,
    isStored: isStored(platform.rules, at),
    ...(kinds && { kinds }),
  };
  if (isMembers(data)) {
    if (kinds === undefined) return { ok: true, given: undefined };
    const as = kinds.find((kind) => kind === 'json' || kind === 'form' || kind === 'multipart');
    if (as === undefined) return refuse(acceptedTypes(kinds));
    const type = as === 'json' ? typeIn(action.headers) : undefined;
    if (type === undefined) return await ofMembers(data as JsonObject, as, parsing, of);
    return isJson(type) ? await ofBytes(Buffer.from(JSON.stringify(data)), type, parsing, of) : refuse(NO_JSON);
  }
  const kind = Array.isArray(data) ? 'list' : encoding === undefined ? 'text' : 'bytes';
  if (kinds === undefined) return refuse(NO_OBJECT);
  if (!kinds.includes(kind)) return refuse(acceptedTypes(kinds));
  if (kind === 'bytes' && !isBase64(String(data)))
    return refuse('data: it is not base64 (RFC 4648 section 4, with its padding and without white space)');
  const type = typeIn(action.headers) ?? DEFAULT_TYPES[kind];
  if (kind === 'list' && !isJson(type)) return refuse(NO_JSON);
  const text = typeof data === 'string' ? data : JSON.stringify(data);
  return await ofBytes(Buffer.from(text, kind === 'bytes' ? 'base64' : 'utf8'), type, parsing, of);
}

async function ofMembers(
  data: JsonObject,
  as: 'json' | 'form' | 'multipart',
  parsing: Parsing,
  of: BodyOf = {},
): Promise<ReadBody> {
  const isSearched = as === 'json' && !isKept('application/json', of);
  const problem =
    as === 'json'
      ? isSearched && (await methodMemberInTurns(data, parsing))
      : (formProblem(data) ?? (as === 'multipart' ? await problemOfParts(data, parsing, of.refused) : undefined));
  if (problem) return { ok: false, detail: `data: ${problem}` };
  const judged = as === 'multipart' ? judgedParts(data) : data;
  return { ok: true, given: { judged, isForm: as !== 'json', bodyHeaders: {}, written: { as } } };
}

/** Returns why an object cannot be sent in parts; its names are searched in the form in which readers get them, as those of a client's own body are. */
async function problemOfParts(
  data: JsonObject,
  parsing: Parsing,
  refused: BodyOf['refused'],
): Promise<string | undefined> {
  const problem = partsProblem(data);
  if (problem !== undefined) return problem;
  const { type, bytes } = headsOfParts(data);
  const search = methodField(type, bytes, refused);
  const found = bytes.length <= LONG_FORM ? runToEnd(search) : await parsing.inTurn((rest) => inSlices(search, rest));
  return found === undefined ? undefined : whyNotSent(found, refused);
}

async function ofBytes(bytes: Buffer, type: string, parsing: Parsing, of: BodyOf | undefined): Promise<ReadBody> {
  const bodyHeaders = { 'content-type': type };
  const found = await judgeInTurns(bodyHeaders, bytes, parsing, of);
  if (!found.ok) return { ok: false, detail: `data: ${found.detail}` };
  const isForm = isFormType(bodyHeaders);
  return { ok: true, given: { judged: found.judged, isForm, bodyHeaders, written: { as: 'bytes', bytes } } };
}

const acceptedTypes = (kinds: readonly BodyKind[]): string =>
  `data: this operation takes ${[...new Set(kinds.map((kind) => NAMES[kind]))].join(', or ')}`;

const isJson = (type: string): boolean => /^application\/(?:json|[a-z0-9.-]+\+json)(?:;|$)/i.test(type);

const isMembers = (data: unknown): boolean => typeof data === 'object' && data !== null && !Array.isArray(data);

const typeIn = (headers: Action['headers'] = {}): string | undefined =>
  Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1];

/**
 * Converts an object that is sent as multipart to what the decision uses: the same result as for the encoded bytes (parse-multipart.ts).
 *
 * @param data an object that `partsProblem` accepts
 */
export function judgedParts(data: JsonObject): JsonObject | UnreadBody {
  const tree = new FormTree();
  for (const [name, values] of Object.entries(data)) {
    if (!PART_NAME.test(name)) return unreadParts('a name that is not plain');
    for (const value of [values].flat()) {
      const known = judgedPart(value);
      if (known === undefined) return unreadParts('a name of a file that is not plain');
      const problem = tree.add(name, known);
      if (problem !== undefined) return unreadParts(problem);
    }
  }
  return tree.toObject() ?? unreadParts(GAPS);
}

function judgedPart(value: JsonValue): JsonValue | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    // Line breaks as FormData writes them (WHATWG HTML, "multipart/form-data encoding algorithm").
    return String(value).replace(/\r?\n|\r/g, '\r\n');
  const { filename, data, encoding, content_type: type = 'application/octet-stream' } = value;
  // FormData writes a file without a name as a field.
  if (filename === '' || !FILE_NAME.test(String(filename))) return undefined;
  const content = Buffer.from(String(data), encoding === 'base64' ? 'base64' : 'utf8');
  return knownFile(String(filename), String(type).toLowerCase(), content);
}
