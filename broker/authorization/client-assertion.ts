/** How a client proves who it is (`private_key_jwt`, RFC 7523): what we ask of its JWT beyond what the library does. */
import { errors } from 'oidc-provider';

/** Used ones are remembered until they are over: so long, in seconds, at most. Clients take a minute to five. */
const MOST_AHEAD = 3600;

type Claims = Readonly<Record<string, unknown>>;

/**
 * The library's `assertJwtClientAuthClaimsAndHeader`, after signature, issuer, audience and times. An assertion for several
 * servers could be brought here by any of them, and one without an end in sight would be good for as long.
 *
 * @throws InvalidClientAuth
 */
export function refuseLooseAssertion(_context: unknown, { aud, exp }: Claims): void {
  if (Array.isArray(aud) && aud.length !== 1)
    throw new errors.InvalidClientAuth('the client_assertion is for more than one audience (aud)');
  if (typeof exp !== 'number' || !(exp <= Date.now() / 1000 + MOST_AHEAD))
    throw new errors.InvalidClientAuth(`the client_assertion must be over (exp) within ${MOST_AHEAD} seconds`);
}
