/** The JSON of a request, before anybody asks whether it is what the route takes. */
import { isUtf8 } from 'node:buffer';
import type { Request } from 'express';
import { parseStrictJson, parseStrictJsonInParts, type StrictJson } from '../../json/strict.ts';
import { askedPlatform } from '../policy/asked-platform.ts';
import type { JsonObject } from '../policy/facts.ts';
import { LONG_BODY, type Parsing } from '../runtime/long-bodies.ts';
import { OWNERS, type Route } from './route.ts';

/** `code`: what the refusal is, where it is another than `invalid_request`. */
export type ParsedBody =
  | { ok: true; value: unknown; platform: string }
  | { ok: false; error: string; code?: 'payload_too_large' };

/** Members of all objects in a body of an owner: a hundred thousand names keep everybody waiting, and no rules have as many. */
const OWNERS_MEMBERS = 20_000;

/**
 * The platform is read before the schema is checked: the facts about it come with the authentication's one query. `parsing`: what
 * parses a long one; undefined where it is known to be short.
 */
export function parseBody(
  { body, headers }: Request,
  route: Route,
  parsing?: Parsing,
): ParsedBody | Promise<ParsedBody> {
  const isBuffer = Buffer.isBuffer(body);
  // In chunks, that there is nothing shows only when it was read.
  if (route.bodyOptional && (isEmpty(headers) || (isBuffer && body.length === 0)))
    return { ok: true, value: {}, platform: '' };
  if (!isBuffer || body.length === 0)
    return { ok: false, error: 'Send a JSON body with the header "Content-Type: application/json".' };
  const text = jsonText(body, headers['content-type']);
  if (text === undefined) return { ok: false, error: 'The body must be in UTF-8.' };
  const limits = {
    nulAllowedIn: route.nulAllowedIn ?? [],
    ...(OWNERS.has(route.auth) && { maxMembers: OWNERS_MEMBERS }),
  };
  if (parsing === undefined || body.length <= LONG_BODY) return bodyOf(parseStrictJson(text, limits), route);
  return parsing((rest) => parseStrictJsonInParts(text, limits, rest)).then((parsed) => bodyOf(parsed, route));
}

function bodyOf(parsed: StrictJson, route: Route): ParsedBody {
  if (!parsed.ok) return { ok: false, error: route.secretBody ? 'The body is not well-formed JSON.' : parsed.error };
  const { value } = parsed;
  return { ok: true, value, platform: platformOf(value, route) };
}

/** The platform that a body of this route asks about; the empty string where it names none. */
export function platformOf(value: unknown, route: Route): string {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  const { platformIn = ({ platform }: JsonObject) => platform } = route;
  return isObject ? askedPlatform(platformIn(value as JsonObject)) : '';
}

/**
 * The text of a JSON body, byte for byte; undefined when it is not in UTF-8 (RFC 8259 section 8.1), or is said to be in
 * another character set: decoded with replacement characters it would be another body.
 */
export function jsonText(body: Buffer, contentType = ''): string | undefined {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(contentType)?.[1]?.toLowerCase();
  if ((charset !== undefined && charset !== 'utf-8') || !isUtf8(body)) return undefined;
  return body.toString('utf8');
}

/** No body was sent (RFC 9112 section 6.3). */
const isEmpty = (headers: Request['headers']): boolean =>
  headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;
