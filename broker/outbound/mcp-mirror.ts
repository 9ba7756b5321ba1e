/** What revision 2026-07-28 wants in headers beside the body, so that proxies need not read it (Streamable HTTP, headers). */
import type { JsonObject } from '../decision/facts.ts';
import { isHeaderValue } from './request-check.ts';

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}$/;
const MOST_DEPTH = 16;
const ENCODED = /^=\?base64\?.*\?=$/s;

/** A text as the value of a header: as it is, or in base64 between `=?base64?` and `?=`. */
export function mirrored(text: string): string {
  if (text !== '' && isHeaderValue(text) && !ENCODED.test(text)) return text;
  return `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=`;
}

/**
 * The `mcp-param-*` headers of a call: one for each argument that the tool's schema marks with `x-mcp-header`, and that is
 * a text, an integer or a truth value. A mark that is no header name is passed over.
 */
export function parameterHeaders(inputSchema: unknown, args: JsonObject): Record<string, string> {
  const headers: Record<string, string> = {};
  const walk = (schema: unknown, value: unknown, depth: number): void => {
    const properties = memberOf(schema, 'properties');
    if (depth > MOST_DEPTH || typeof properties !== 'object' || properties === null) return;
    for (const [name, property] of Object.entries(properties)) {
      const argument = memberOf(value, name);
      if (argument === undefined || argument === null) continue;
      const mark = memberOf(property, 'x-mcp-header');
      if (typeof mark === 'string' && TOKEN.test(mark)) {
        const text = textOf(argument);
        if (text !== undefined) headers[`mcp-param-${mark.toLowerCase()}`] = mirrored(text);
      }
      walk(property, argument, depth + 1);
    }
  };
  walk(inputSchema, args, 0);
  return headers;
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
