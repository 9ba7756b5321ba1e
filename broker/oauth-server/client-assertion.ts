/** How a client proves who it is (`private_key_jwt`, RFC 7523): what we ask of its JWT beyond what the library does. */
import { errors } from 'oidc-provider';

/** Used ones are remembered until they are over: so long, in seconds, at most. Clients take a minute to five. */
const MOST_AHEAD = 3600;

/** How far ahead of ours a client's clock may be, in seconds. */
const MOST_SKEW = 60;

type Claims = Readonly<Record<string, unknown>>;

/**
 * The library's `assertJwtClientAuthClaimsAndHeader`, after signature, issuer, audience and times. An assertion for several
 * servers could be brought here by any of them, and one without an end in sight would be good for as long.
 *
 * @throws InvalidClientAuth
 */
export function refuseLooseAssertion(_context: unknown, { aud, exp, iat }: Claims): void {
  if (Array.isArray(aud) && aud.length !== 1)
    throw new errors.InvalidClientAuth('the client_assertion is for more than one audience (aud)');
  if (typeof exp !== 'number' || !(exp <= Date.now() / 1000 + MOST_AHEAD))
    throw new errors.InvalidClientAuth(`the client_assertion must be over (exp) within ${MOST_AHEAD} seconds`);
  if (iat !== undefined && (typeof iat !== 'number' || !(iat <= Date.now() / 1000 + MOST_SKEW)))
    throw new errors.InvalidClientAuth('the client_assertion was issued in the future (iat)');
}
