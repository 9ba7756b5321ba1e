/** Invites: an admin describes an agent, and whoever holds the secret brings its key. */

import { newAgentId, uuidv4 } from '../crypto/ids.ts';
import { hashToken, mintToken } from '../crypto/one-time-token.ts';
import type { AgentPublicKey } from '../crypto/public-key.ts';
import type { Secret } from '../crypto/secret.ts';
import type { Instant, JsonObject } from '../policy/facts.ts';
import { present } from '../policy/present.ts';
import { findAgent } from '../store/agents.ts';
import { lockOrganisation } from '../store/governance.ts';
import { claimInvite, findInviteByToken, putInvite } from '../store/invites.ts';
import type { AgentTable, InviteTable, OwnerTable, ScopesOn } from '../store/schema.ts';
import type { Db } from '../store/store.ts';
import { refuseSharedKey } from './bind.ts';
import { choosePolicy, knownScopes, makeAgent, refuseTakenName } from './new-agent.ts';
import { AgentRefused } from './refused.ts';

/** How long an invite can be used. */
const INVITE_MS = 7 * 24 * 3_600_000;

export type Inviting = { name: string; policy?: string; grants: readonly ScopesOn[] };

/** In a transaction: makes an invite. `secret` is to be shown once. Throws AgentRefused. */
export async function makeInvite(
  db: Db,
  owner: Pick<OwnerTable, 'id' | 'organisation_id'>,
  { name, policy: policyName, grants }: Inviting,
  now: Instant,
): Promise<{ invite: InviteTable; secret: Secret }> {
  const { organisation_id } = owner;
  await lockOrganisation(db, organisation_id);
  const policy = await choosePolicy(db, organisation_id, policyName);
  await refuseTakenName(db, organisation_id, name, 'Choose another name.');
  const { out } = await knownScopes(db, organisation_id, grants);
  const [unknown] = out;
  if (unknown)
    throw new AgentRefused(
      'invalid_request',
      `grants: no platform ${unknown.platformId} of the organisation has the scope ${unknown.scopes[0]}.`,
    );
  const { token: secret, hash } = mintToken('invite');
  const invite: InviteTable = {
    organisation_id,
    id: uuidv4(),
    token_hash: hash,
    agent_name: name,
    policy_id: policy?.id ?? null,
    grants: JSON.stringify(grants),
    owner_id: owner.id,
    created_at: now,
    expires_at: now + INVITE_MS,
    claimed_at: null,
    agent_id: null,
  };
  await putInvite(db, invite);
  return { invite, secret };
}

export type InviteStatus = 'open' | 'claimed' | 'expired';

export const inviteStatusAt = (
  { claimed_at, expires_at }: Pick<InviteTable, 'claimed_at' | 'expires_at'>,
  now: Instant,
): InviteStatus => (claimed_at !== null ? 'claimed' : expires_at <= now ? 'expired' : 'open');

const gone = () =>
  new AgentRefused('gone', 'This invite is unknown, used, revoked or expired. Ask an owner for another.');

/** The invite with this secret. Throws AgentRefused when it is invalid. */
export async function findOpenInvite(db: Db, secret: string, now: Instant): Promise<InviteTable> {
  const hash = hashToken(secret, 'invite');
  const invite = hash === undefined ? undefined : await findInviteByToken(db, hash);
  if (!invite || inviteStatusAt(invite, now) !== 'open') throw gone();
  return invite;
}

/** The ids of the agent that an invite is about to become. */
export const newIds = () => ({ id: uuidv4(), agent_id: newAgentId() });

/**
 * In a transaction: consumes the invite and creates the active agent with the key. One of concurrent callers wins. Scopes that
 * the platforms no longer have are dropped. Returns the agent. Throws AgentRefused.
 */
export async function bindByInvite(
  db: Db,
  invite: InviteTable,
  ids: ReturnType<typeof newIds>,
  key: AgentPublicKey,
  now: Instant,
  note: (facts: JsonObject) => void,
): Promise<AgentTable> {
  const { organisation_id, owner_id, policy_id, agent_name: name } = invite;
  await lockOrganisation(db, organisation_id);
  if (!(await claimInvite(db, invite, ids.id, now))) throw gone();
  await refuseTakenName(db, organisation_id, name, 'Ask an owner for an invite by another name.');
  await refuseSharedKey(db, { organisationId: organisation_id, id: ids.id }, key);
  const { in: granted, out: dropped } = await knownScopes(db, organisation_id, JSON.parse(invite.grants) as ScopesOn[]);
  const birth = { organisation_id, ...ids, name, owner_id, policy_id, origin: 'owner', status: 'active' } as const;
  await makeAgent(db, birth, key, granted, now);
  note({
    invite: invite.id,
    fingerprint: key.fingerprint,
    granted: JSON.parse(JSON.stringify(granted)),
    dropped: JSON.parse(JSON.stringify(dropped)),
  });
  return present(await findAgent(db, organisation_id, ids.id), 'agent');
}
