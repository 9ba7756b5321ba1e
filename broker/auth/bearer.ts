import type { IncomingMessage } from 'node:http';
import { TOKEN_PREFIXES } from '../crypto/one-time-token.ts';
import { CHILD_TOKEN_BEGINNING } from './child-token.ts';
import type { AuthRefusal } from './principal.ts';

/** Whether an Authorization header of a request has the scheme Bearer, whatever follows, and however many headers there are. */
export const sendsBearer = ({ headersDistinct }: IncomingMessage): boolean =>
  headersDistinct.authorization?.some((value) => /^bearer(?:\s|$)/i.test(value)) ?? false;

/**
 * Reads the bearer of a request (RFC 6750 section 2.1): from the header only, never the query or the body; the scheme in any case, one space, one
 * token. `twice` when there is more than one Authorization header, of which Node would silently use the first.
 */
export function readBearer(
  request: IncomingMessage,
): { kind: 'bearer'; token: string } | { kind: 'twice' } | AuthRefusal {
  let seen: string | undefined;
  const raw = request.rawHeaders;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i];
    if (name?.length === 13 && name.toLowerCase() === 'authorization') {
      if (seen !== undefined) return { kind: 'twice' };
      seen = raw[i + 1] ?? '';
    }
  }
  if (seen === undefined)
    return { kind: 'refused', code: 'missing_token', detail: 'Send your token as "Authorization: Bearer <token>".' };
  const token = /^bearer ([A-Za-z0-9._~+/=-]+)$/i.exec(seen)?.[1];
  if (token === undefined)
    return {
      kind: 'refused',
      code: 'invalid_token',
      detail: 'The Authorization header must be "Bearer", one space, and one token.',
    };
  return { kind: 'bearer', token };
}

/** The kind that a bearer claims to be by its prefix; undefined: another kind. Unverified. */
export function kindOf(token: string): 'static_key' | 'child' | undefined {
  if (token.startsWith(TOKEN_PREFIXES.static_key)) return 'static_key';
  return token.startsWith(CHILD_TOKEN_BEGINNING) ? 'child' : undefined;
}
