/** What revision 2026-07-28 wants in headers beside the body, so that proxies need not read it (Streamable HTTP, headers). */
import type { JsonObject } from '../decision/facts.ts';
import { isHeaderValue } from './request-check.ts';

const MARK = 'x-mcp-header';
/** RFC 9110 section 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}$/;
const MOST_DEPTH = 64;
const ENCODED = /^=\?base64\?.*\?=$/s;
const MIRRORED_TYPES = ['string', 'integer', 'boolean'];
/** Keywords below which a schema holds for more than one place, or for none: a mark there names no argument. */
const ELSEWHERE = `items prefixItems contains additionalProperties unevaluatedProperties unevaluatedItems propertyNames
  patternProperties dependentSchemas oneOf anyOf allOf not if then else $defs definitions`.split(/\s+/);
/** Of these, those whose value is a map of schemas. */
const MAPS = ['patternProperties', 'dependentSchemas', '$defs', 'definitions'];

/** An argument that is mirrored: where it stands, and in which header, in lower case. */
export type Mirrored = { path: readonly string[]; header: string };

/** A text as the value of a header: as it is, or in base64 between `=?base64?` and `?=`. */
export function mirrored(text: string): string {
  if (text !== '' && isHeaderValue(text) && !ENCODED.test(text)) return text;
  return `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=`;
}

/**
 * The arguments that a tool's schema marks to be mirrored.
 *
 * @returns undefined for a mark that breaks the rules: such a tool must not be called at all
 */
export function mirroredArguments(inputSchema: unknown): readonly Mirrored[] | undefined {
  const found: Mirrored[] = [];
  return visit(inputSchema, [], true, found) ? found : undefined;
}

/** The `mcp-param-*` headers of a call of a tool whose marks are in order. What is null or absent has none. */
export function parameterHeaders(inputSchema: unknown, args: JsonObject): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const { path, header } of mirroredArguments(inputSchema) ?? []) {
    const text = textOf(path.reduce<unknown>(memberOf, args));
    if (text !== undefined) headers[`mcp-param-${header}`] = mirrored(text);
  }
  return headers;
}

function visit(schema: unknown, path: readonly string[], reachable: boolean, found: Mirrored[]): boolean {
  if (typeof schema !== 'object' || schema === null) return true;
  if (path.length > MOST_DEPTH) return false;
  if (Object.hasOwn(schema, MARK) && !take(schema, path, reachable, found)) return false;
  for (const [name, child] of Object.entries(memberOf(schema, 'properties') ?? {}))
    if (!visit(child, [...path, name], reachable, found)) return false;
  return ELSEWHERE.every((keyword) => {
    const below = memberOf(schema, keyword);
    const branches = Array.isArray(below) ? below : MAPS.includes(keyword) ? Object.values(below ?? {}) : [below];
    return branches.every((branch) => visit(branch, [...path, keyword], false, found));
  });
}

function take(schema: object, path: readonly string[], reachable: boolean, found: Mirrored[]): boolean {
  const name = memberOf(schema, MARK);
  if (!reachable || path.length === 0 || typeof name !== 'string' || !TOKEN.test(name)) return false;
  const header = name.toLowerCase();
  if (!MIRRORED_TYPES.includes(String(memberOf(schema, 'type')))) return false;
  if (found.some((one) => one.header === header)) return false;
  found.push({ path, header });
  return true;
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
