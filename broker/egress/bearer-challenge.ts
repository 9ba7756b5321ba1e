/** Parses the `WWW-Authenticate` header of a refused bearer token (RFC 6750 section 3, RFC 9728 section 5.1). */

export type BearerChallenge = {
  /** For example `invalid_token` or `insufficient_scope`. */
  error: string | undefined;
  /** The `scope` member: scopes that a token needs. */
  scopes: readonly string[];
  /** The `resource_metadata` member, unparsed. */
  metadata: string | undefined;
};

const MAX_SCOPES = 100;
const MAX_SCOPE_LENGTH = 200;

/**
 * Parses a challenge. A value is quoted or a token (RFC 9110 section 11.2). Several challenges are read as one; of duplicate members the
 * first counts.
 */
export function readBearerChallenge(header: string | string[] | undefined): BearerChallenge {
  const text = [header ?? []].flat().join(', ');
  const member = (name: string): string | undefined => {
    const [, quoted, token] =
      new RegExp(`(?:^|[\\s,])${name}=(?:"([\\x20\\x21\\x23-\\x5b\\x5d-\\x7e]{1,4096})"|([^\\s",]{1,4096}))`, 'i').exec(
        text,
      ) ?? [];
    return quoted ?? token;
  };
  const scopes = (member('scope') ?? '').split(' ').filter((one) => one !== '' && one.length <= MAX_SCOPE_LENGTH);
  return {
    error: member('error'),
    scopes: scopes.length <= MAX_SCOPES ? scopes : [],
    metadata: member('resource_metadata'),
  };
}
