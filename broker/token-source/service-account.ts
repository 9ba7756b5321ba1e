/** Requests a token with a signed assertion (RFC 7523 §2.1; Google, "Using OAuth 2.0 for Server to Server Applications"). */
import { SignJWT } from 'jose';
import type { Broker } from '../broker.ts';
import type { Exchanged } from './exchanged.ts';
import { ACCOUNT_KEY, readRsaKey } from './rsa-key.ts';
import { partOf } from './secret-part.ts';
import { askTokenEndpoint } from './token-endpoint.ts';
import type { AccountTokenRequest } from './token-request.ts';

const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
/** Tolerates a server clock that is behind by this much. */
const BACKDATED_S = 30;
/** Lifetime of the assertion, which is used immediately. Google accepts an hour at most. */
const ASSERTION_LIFE_S = 5 * 60;

/** Requests one token. */
export async function exchangeAsAccount(
  broker: Pick<Broker, 'outbound' | 'clock'>,
  { platformId, connectionId, tokenEndpoint, auth, parts }: AccountTokenRequest,
): Promise<Exchanged> {
  const read = readRsaKey(partOf(parts, 'private_key'), ACCOUNT_KEY);
  if (!read.ok)
    return {
      kind: 'refused',
      of: 'connection',
      detail: `The service account of ${platformId} cannot sign: its private key ${read.problem}. An owner replaces the secret of the connection.`,
    };
  const seconds = Math.floor(broker.clock() / 1000);
  const kid = parts.private_key_id?.reveal();
  // Google accepts a subject only for delegation, although RFC 7523 §3 requires one in every assertion.
  const subject = auth.subject === undefined ? {} : { sub: auth.subject };
  const assertion = await new SignJWT({ scope: auth.scopes.join(' '), ...subject })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...(kid !== undefined && { kid }) })
    .setIssuer(partOf(parts, 'client_email'))
    .setAudience(tokenEndpoint)
    .setIssuedAt(seconds - BACKDATED_S)
    .setExpirationTime(seconds + ASSERTION_LIFE_S)
    .sign(read.key);
  const form = { grant_type: GRANT_TYPE, assertion };
  return await askTokenEndpoint(broker, { platformId, connectionId, tokenEndpoint, form });
}
