/** Tokens of App installations in stored form. */
import type { Broker } from '../broker.ts';
import { SealError } from '../crypto/seal.ts';
import type { UpstreamTokenTable } from '../store/tables/connections.ts';
import { type AccessToken, readCredential, writeCredential } from './access-token.ts';

/** Seals a token for the row of its id. */
export const sealToken = ({ vault }: Pick<Broker, 'vault'>, organisationId: string, token: AccessToken) =>
  vault.seal(sealedPlace(organisationId, token.id), writeCredential(token));

/** Opens the token of a row; undefined when there is none yet, or when it was altered, which counts as none. */
export function openToken(
  { vault, log }: Pick<Broker, 'vault' | 'log'>,
  row: Pick<UpstreamTokenTable, 'organisation_id' | 'id' | 'token'>,
): AccessToken | undefined {
  if (row.token === null) return undefined;
  try {
    return readCredential(vault.open(sealedPlace(row.organisation_id, row.id), row.token).toString('utf8'));
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    log.error({ err: error, security: true, organisation: row.organisation_id }, 'an access token cannot be opened');
    return undefined;
  }
}

const sealedPlace = (organisationId: string, rowId: string) =>
  ({ table: 'upstream_tokens', organisationId, rowId }) as const;
