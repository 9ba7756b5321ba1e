/** The sealed tokens in a row, which an owner or a person gave. */
import type { Broker } from '../broker.ts';
import { SealError } from '../crypto/seal.ts';
import { Secret } from '../crypto/secret.ts';
import { present } from '../runtime/present.ts';
import type { TokenRow, TokenRowPlace } from '../store/oauth-tokens.ts';
import { readCredential } from '../token-source/access-token.ts';

/** The place that an access token is sealed for, and that of its refresh token. */
export const credentialPlace = ({ table, organisationId, id }: TokenRowPlace) =>
  ({ table, column: 'credential', organisationId, rowId: id }) as const;
export const refreshPlace = ({ table, organisationId, id }: TokenRowPlace) =>
  ({ table, column: 'refresh_token', organisationId, rowId: id }) as const;

/** Opens the refresh token of a row that has one; undefined when it was altered, which is logged. */
export function openRefreshToken(
  { vault, log }: Pick<Broker, 'vault' | 'log'>,
  place: TokenRowPlace,
  row: TokenRow,
): Secret | undefined {
  const { organisationId } = place;
  const sealed = present(row.refresh_token, 'refresh token');
  try {
    return new Secret(vault.open(refreshPlace(place), sealed).toString('utf8'));
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    log.error({ err: error, security: true, organisation: organisationId }, 'a refresh token cannot be opened');
    return undefined;
  }
}

/**
 * Returns the tokens of a row in the order in which to revoke them: revoking the refresh token revokes the whole grant, at servers that implement that
 * (RFC 7009 section 2.1). None: the row has no tokens. Undefined: they were altered.
 */
export function openTokens(
  { vault }: Pick<Broker, 'vault'>,
  place: TokenRowPlace,
  { credential, refresh_token: refresh }: Pick<TokenRow, 'credential' | 'refresh_token'>,
): Secret[] | undefined {
  try {
    const access = credential && readCredential(vault.open(credentialPlace(place), credential).toString('utf8'))?.token;
    const refreshToken = refresh && new Secret(vault.open(refreshPlace(place), refresh).toString('utf8'));
    return [refreshToken, access].filter((token) => token instanceof Secret);
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    return undefined;
  }
}
