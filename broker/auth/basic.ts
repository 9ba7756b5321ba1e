import type { IncomingMessage } from 'node:http';
import type { AuthRefusal } from './principal.ts';

export type BasicCredentials = { kind: 'basic'; user: string; password: string };

/**
 * Reads user name and password of a request (RFC 7617): from the header only, with the scheme in any case. `twice` when there is more than one
 * Authorization header, of which Node would silently use the first.
 */
export function readBasic({ headersDistinct }: IncomingMessage): BasicCredentials | { kind: 'twice' } | AuthRefusal {
  const [value, another] = headersDistinct.authorization ?? [];
  if (another !== undefined) return { kind: 'twice' };
  if (value === undefined)
    return { kind: 'refused', code: 'missing_token', detail: 'Send the token of the agent as the Basic password.' };
  const encoded = /^basic ([A-Za-z0-9+/=]+)$/i.exec(value)?.[1];
  const pair = encoded === undefined ? '' : Buffer.from(encoded, 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  if (colon === -1 || colon === pair.length - 1)
    return {
      kind: 'refused',
      code: 'invalid_token',
      detail: 'The Authorization header must be Basic, with the token of the agent as the password.',
    };
  return { kind: 'basic', user: pair.slice(0, colon), password: pair.slice(colon + 1) };
}
