/** Body values that revision 2026-07-28 mirrors in headers, so that proxies need not parse it (Streamable HTTP, headers). */
import type { JsonObject } from '../../policy/facts.ts';
import { isHeaderValue } from '../outbound-request.ts';

const MARK = 'x-mcp-header';
/** RFC 9110 section 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}$/;
const MAX_DEPTH = 64;
/** Most marks of one tool, because servers limit the number of headers. */
const MAX_MARKS = 64;
const ENCODED = /^=\?base64\?.*\?=$/s;
const MIRRORED_TYPES = ['string', 'integer', 'boolean'];
/** Keywords whose subschemas apply to several places, or to none: a mark there identifies no single argument. */
const AMBIGUOUS_KEYWORDS = new Set(
  `items prefixItems contains additionalProperties unevaluatedProperties unevaluatedItems propertyNames
  patternProperties dependentSchemas oneOf anyOf allOf not if then else $defs definitions`.split(/\s+/),
);
/** Those of AMBIGUOUS_KEYWORDS whose value is a map of schemas. */
const MAPS = new Set(['patternProperties', 'dependentSchemas', '$defs', 'definitions']);

/** Paths of the mirrored arguments, by lower-case header name. */
export type Mirrored = ReadonlyMap<string, readonly string[]>;

type Found = Map<string, readonly string[]>;

/** Encodes text as a header value: literally, or in base64 between `=?base64?` and `?=`. */
export function mirrored(text: string): string {
  if (text !== '' && isHeaderValue(text) && !ENCODED.test(text)) return text;
  return `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=`;
}

/**
 * Returns the arguments that a tool's schema marks to be mirrored.
 *
 * @returns undefined for an invalid mark, or too many: such a tool must not be called
 */
export function mirroredArguments(inputSchema: unknown): Mirrored | undefined {
  const found: Found = new Map();
  return visit(inputSchema, [], true, found) ? found : undefined;
}

/** Returns the `mcp-param-*` headers of a call to a tool with valid marks. Null and absent arguments have none. */
export function parameterHeaders(inputSchema: unknown, args: JsonObject): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [header, path] of mirroredArguments(inputSchema) ?? []) {
    const text = textOf(path.reduce<unknown>(memberOf, args));
    if (text !== undefined) headers[`mcp-param-${header}`] = mirrored(text);
  }
  return headers;
}

function visit(schema: unknown, path: readonly string[], reachable: boolean, found: Found): boolean {
  if (typeof schema !== 'object' || schema === null) return true;
  if (path.length > MAX_DEPTH) return false;
  if (Object.hasOwn(schema, MARK) && !take(schema, path, reachable, found)) return false;
  for (const [name, child] of entriesOf(memberOf(schema, 'properties')))
    if (!visit(child, [...path, name], reachable, found)) return false;
  return entriesOf(schema).every(([keyword, below]) => {
    if (!AMBIGUOUS_KEYWORDS.has(keyword)) return true;
    const branches = Array.isArray(below)
      ? below
      : MAPS.has(keyword)
        ? entriesOf(below).map(([, each]) => each)
        : [below];
    return branches.every((branch) => visit(branch, [...path, keyword], false, found));
  });
}

function take(schema: object, path: readonly string[], reachable: boolean, found: Found): boolean {
  const name = memberOf(schema, MARK);
  if (!reachable || path.length === 0 || typeof name !== 'string' || !TOKEN.test(name)) return false;
  const header = name.toLowerCase();
  if (!MIRRORED_TYPES.includes(String(memberOf(schema, 'type')))) return false;
  if (found.has(header) || found.size >= MAX_MARKS) return false;
  found.set(header, path);
  return true;
}

/** Objects only: the entries of a string would be its characters. */
function entriesOf(value: unknown): [string, unknown][] {
  return typeof value === 'object' && value !== null ? Object.entries(value) : [];
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return String(value);
  return Number.isSafeInteger(value) ? String(value) : undefined;
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Record<string, unknown>)[name];
}
