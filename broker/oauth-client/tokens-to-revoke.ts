/** Reads tokens that are deleted here from their rows, for the request that revokes them at their server. */
import type { Broker } from '../broker.ts';
import type { TokenRow, TokenRowPlace } from '../store/oauth-tokens.ts';
import { type OAuthConnectionFacts, readFacts } from './facts.ts';
import { isProblem, type OAuthProblem } from './problem.ts';
import type { Registered } from './registered.ts';
import type { Issued } from './resolve.ts';
import type { TokensToRevoke } from './revocations.ts';
import { openTokens } from './sealed-tokens.ts';

/** Tokens in the row of a connection or of a person. */
export type HeldTokens = TokenRow & { table: TokenRowPlace['table']; person_id?: string };

/**
 * Returns the tokens of each row, in the same order. False: the row has none. A problem: they cannot be revoked.
 *
 * @param clientOf returns the broker's client that tokens were issued to; called once for each client
 */
export async function readTokensToRevoke(
  broker: Pick<Broker, 'vault'>,
  rows: readonly HeldTokens[],
  clientOf: (issued: Issued) => Promise<Registered | OAuthProblem>,
): Promise<(TokensToRevoke | false | OAuthProblem)[]> {
  const clients = new Map<string, Registered | OAuthProblem>();
  const knownClient = async ({ client_id: client, server }: OAuthConnectionFacts) => {
    const key = JSON.stringify([client, server]);
    const found = clients.get(key) ?? (await clientOf({ client, server }));
    clients.set(key, found);
    return found;
  };
  const read: (TokensToRevoke | false | OAuthProblem)[] = [];
  for (const { table, organisation_id: organisationId, id, person_id: personId = null, ...row } of rows) {
    const facts = readFacts(row.oauth);
    const client = facts && row.credential ? await knownClient(facts) : undefined;
    const tokens = openTokens(broker, { table, organisationId, id }, row);
    if (!facts || !client) read.push(false);
    else if (isProblem(client)) read.push(client);
    else if (!tokens) read.push({ problem: 'failed', detail: 'The stored tokens cannot be opened.' });
    else read.push(tokens.length > 0 && { client, tokens, facts, personId });
  }
  return read;
}
