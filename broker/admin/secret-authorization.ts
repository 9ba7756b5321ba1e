/** An owner authorises one secret to come, from whoever holds the token: for one agent, one platform, and nothing else. */

import type { Changing } from '../audit/record-change.ts';
import { type ChangingOwner, recordChange } from '../audit/record-change.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { mintToken } from '../crypto/one-time-token.ts';
import type { Secret } from '../crypto/secret.ts';
import type { Instant } from '../policy/facts.ts';
import { lockOrganisation } from '../store/governance.ts';
import type { SecretAuthorizationTable } from '../store/schema.ts';
import { putSecretAuthorization } from '../store/secret-authorizations.ts';
import { checkTerms, findGrant, type GrantContext } from './grant-terms.ts';
import { ChangeRefused } from './refused.ts';

/** How long a secret may take to come. */
const SECRET_AUTHORIZATION_MS = 24 * 3_600_000;

export type Authorizing = {
  /** What the connection is to be called. */
  label: string;
  /** Of the grant that is made, where the agent has none on the platform. */
  scopes?: readonly string[];
};

/** Makes an authorisation. `token` is to be shown once. Throws ChangeRefused; AuditUnavailable, and then there is none. */
export async function authorizeSecret(
  services: Changing,
  by: ChangingOwner,
  context: GrantContext,
  { label, scopes }: Authorizing,
): Promise<{ authorization: SecretAuthorizationTable; token: Secret }> {
  const { agent, platformId, connections } = context;
  const now = services.broker.clock();
  checkTerms(context, { ...(scopes && { scopes: [...scopes] }) });
  if (agent.agent_type === 'child')
    throw new ChangeRefused('conflict', 'A child has what its parent has: authorise a secret for the parent.');
  if (connections.some((one) => one.label === label))
    throw new ChangeRefused('conflict', `There is a connection "${label}" already: choose another label.`);
  const { token, hash } = mintToken('secret');
  const change = { reason: 'secret_authorized', agent, platform: platformId };
  const authorization = await recordChange(services, by, change, async (db, note) => {
    await lockOrganisation(db, agent.organisation_id);
    const grant = await findGrant(db, context, undefined);
    if (grant && scopes)
      throw new ChangeRefused(
        'conflict',
        'scopes: the agent has a grant on this platform, which will use the secret. Change the grant, and leave them out.',
      );
    if (!grant && !scopes)
      throw new ChangeRefused(
        'invalid_request',
        'scopes: the agent has no grant on this platform; say what it may do.',
      );
    const made: SecretAuthorizationTable = {
      organisation_id: agent.organisation_id,
      id: uuidv4(),
      token_hash: hash,
      agent_id: agent.id,
      platform_id: platformId,
      label,
      scopes: scopes ? JSON.stringify(scopes) : null,
      owner_id: by.owner.id,
      created_at: now,
      expires_at: now + SECRET_AUTHORIZATION_MS,
      used_at: null,
      connection_id: null,
    };
    await putSecretAuthorization(db, made);
    note({
      authorization: made.id,
      label,
      scopes: scopes ? [...scopes] : null,
      expires_at: new Date(made.expires_at).toISOString(),
    });
    return made;
  });
  return { authorization, token };
}

export type SecretAuthorizationStatus = 'open' | 'used' | 'expired';

export const secretAuthorizationStatusAt = (
  { used_at, expires_at }: Pick<SecretAuthorizationTable, 'used_at' | 'expires_at'>,
  now: Instant,
): SecretAuthorizationStatus => (used_at !== null ? 'used' : expires_at <= now ? 'expired' : 'open');
