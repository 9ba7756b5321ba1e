/** The JSON of a request, before anybody asks whether it is what the route takes. */
import { isUtf8 } from 'node:buffer';
import type { Request } from 'express';
import { askedPlatform } from '../calls/asked-platform.ts';
import type { JsonObject } from '../decision/facts.ts';
import { parseStrictJson } from '../wire/strict-json.ts';
import type { Route } from './route.ts';

/** `code`: what the refusal is, where it is another than `invalid_request`. */
export type ParsedBody =
  | { ok: true; value: unknown; platform: string }
  | { ok: false; error: string; code?: 'payload_too_large' };

/**
 * The platform is read before the schema is checked: the facts about it come with the authentication's one query. A body
 * that is not UTF-8 (RFC 8259 section 8.1) is refused: decoded with replacement characters it would be another one.
 */
export function parseBody({ body, headers }: Request, route: Route): ParsedBody {
  const isBuffer = Buffer.isBuffer(body);
  // In chunks, that there is nothing shows only when it was read.
  if (route.bodyOptional && (isEmpty(headers) || (isBuffer && body.length === 0)))
    return { ok: true, value: {}, platform: '' };
  if (!isBuffer || body.length === 0)
    return { ok: false, error: 'Send a JSON body with the header "Content-Type: application/json".' };
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(headers['content-type'] ?? '')?.[1]?.toLowerCase();
  if ((charset !== undefined && charset !== 'utf-8') || !isUtf8(body))
    return { ok: false, error: 'The body must be in UTF-8.' };
  const parsed = parseStrictJson(body.toString('utf8'), { nulAllowedIn: route.nulAllowedIn ?? [] });
  if (!parsed.ok) return { ok: false, error: route.secretBody ? 'The body is not well-formed JSON.' : parsed.error };
  const { value } = parsed;
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  const { platformIn = ({ platform }: JsonObject) => platform } = route;
  return { ok: true, value, platform: isObject ? askedPlatform(platformIn(value)) : '' };
}

/** No body was sent (RFC 9112 section 6.3). */
const isEmpty = (headers: Request['headers']): boolean =>
  headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;
