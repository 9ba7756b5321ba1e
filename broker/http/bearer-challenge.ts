const REALM = 'realm="agent-broker"';

/**
 * Builds `WWW-Authenticate` for a bearer. RFC 6750 section 3 requires at least one parameter after the scheme, so without `parts` it is the realm.
 */
export const bearerChallenge = (...parts: readonly string[]): Readonly<{ 'WWW-Authenticate': string }> => ({
  'WWW-Authenticate': `Bearer ${parts.join(', ') || REALM}`,
});
