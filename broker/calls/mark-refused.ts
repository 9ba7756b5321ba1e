/** Marks a connection whose credential the platform refused, for its owner. */
import type { Uses } from '../broker.ts';
import type { ConnectionFacts } from '../facts/connection-facts.ts';
import { readFacts } from '../oauth-client/facts.ts';
import { setCredentialStatus } from '../store/connections.ts';
import { findTokens } from '../store/oauth-tokens.ts';
import type { Call } from './call.ts';
import { holderOf } from './credentials.ts';

/**
 * Marks the credential as refused, unless somebody has connected the platform again, or replaced the credential, since the call began: then another
 * credential was refused. It does not stop calls: one endpoint's 401 must not prevent those that still work.
 */
export async function markRefused(
  { broker }: Uses<'store'>,
  { organisationId, createdAt }: Pick<Call['record'], 'organisationId' | 'createdAt'>,
  connection: ConnectionFacts,
): Promise<void> {
  const { db } = broker.store;
  const place = holderOf(organisationId, connection);
  const oauth = (await findTokens(db, place))?.oauth ?? null;
  const connectedAt = readFacts(oauth)?.connected_at ?? 0;
  if (connectedAt > createdAt) return;
  await setCredentialStatus(db, place, 'reauth_needed', { credential: connection.credential, oauth });
}
