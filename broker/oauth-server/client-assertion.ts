/** Client authentication by `private_key_jwt` (RFC 7523): checks in addition to the library's. */
import { errors } from 'oidc-provider';

/** Longest lifetime in seconds, because used assertions are stored until they expire. Clients use one to five minutes. */
const MOST_AHEAD = 3600;

/** Allowed clock skew of a client, in seconds. */
const MOST_SKEW = 60;

type Claims = Readonly<Record<string, unknown>>;

/**
 * The library's `assertJwtClientAuthClaimsAndHeader`, called after signature, issuer, audience and times were checked. An assertion for several
 * audiences could be replayed here by any of them, and one with a distant expiry would stay valid until then.
 *
 * @throws InvalidClientAuth
 */
export function refuseLooseAssertion(_context: unknown, { aud, exp, iat }: Claims): void {
  if (Array.isArray(aud) && aud.length !== 1)
    throw new errors.InvalidClientAuth('the client_assertion is for more than one audience (aud)');
  if (typeof exp !== 'number' || !(exp <= Date.now() / 1000 + MOST_AHEAD))
    throw new errors.InvalidClientAuth(`the client_assertion must expire (exp) within ${MOST_AHEAD} seconds`);
  if (iat !== undefined && (typeof iat !== 'number' || !(iat <= Date.now() / 1000 + MOST_SKEW)))
    throw new errors.InvalidClientAuth('the client_assertion was issued in the future (iat)');
}
