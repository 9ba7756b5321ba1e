/** Invites: an admin describes an agent, and whoever holds the secret binds its key. */

import { type Changing, type ChangingOwner, recordChange, recordInTurn } from '../../audit/record-change.ts';
import type { Broker, Uses } from '../../broker.ts';
import { uuidv4 } from '../../crypto/ids.ts';
import { hashToken, mintToken } from '../../crypto/one-time-token.ts';
import type { AgentPublicKey } from '../../crypto/public-key.ts';
import type { Secret } from '../../crypto/secret.ts';
import type { Instant } from '../../policy/facts.ts';
import { present } from '../../runtime/present.ts';
import { findAgent } from '../../store/agents.ts';
import {
  claimInvite,
  removeInvite as deleteInvite,
  findInviteByToken,
  listInvites as listStored,
  putInvite,
} from '../../store/invites.ts';
import { findPolicy } from '../../store/policies.ts';
import type { AgentTable } from '../../store/tables/agents.ts';
import type { InviteTable } from '../../store/tables/registrations.ts';
import { describeGranted, type GrantedOn, readGranted } from '../grants/granted-terms.ts';
import { ChangeRefused } from '../refused.ts';
import { refuseSharedKey } from './bind.ts';
import { checkNewAgent, knownScopes, makeAgent, type NewAgent, newIds, refuseDuplicateName } from './new-agent.ts';

/** How long an invite can be used. */
const INVITE_MS = 7 * 24 * 3_600_000;

/** An invite without its secret, with its status and its grants as values. */
export type ReadInvite = ReturnType<typeof readInvite>;

const readInvite = ({ token_hash: _token, grants, ...invite }: InviteTable, now: Instant) => ({
  ...invite,
  status: inviteStatusAt(invite, now),
  grants: grantsOf({ id: invite.id, grants }),
});

const grantsOf = ({ id, grants }: Pick<InviteTable, 'id' | 'grants'>): GrantedOn[] =>
  readGranted(grants, `grants of invite ${id}`);

/** Lists all invites of an organisation, newest first; used and expired ones for 30 days. */
export async function listInvites(
  { store: { db }, clock }: Pick<Broker, 'store' | 'clock'>,
  organisationId: string,
): Promise<ReadInvite[]> {
  const now = clock();
  return (await listStored(db, organisationId)).map((invite) => readInvite(invite, now));
}

/** Creates an invite. `secret` is to be shown once. Throws ChangeRefused, or AuditUnavailable: then nothing is created. */
export async function createInvite(
  services: Changing & Uses<'config'>,
  by: ChangingOwner,
  inviting: NewAgent,
): Promise<{ invite: ReadInvite; secret: Secret }> {
  const { name, grants } = inviting;
  const now = services.broker.clock();
  const { id: owner_id, organisation_id } = by.owner;
  const { token: secret, hash } = mintToken('invite');
  const invite = await recordInTurn(services, by, { reason: 'invite_created', detail: name }, async (db, note) => {
    const policy = await checkNewAgent(services, db, organisation_id, inviting);
    const made: InviteTable = {
      organisation_id,
      id: uuidv4(),
      token_hash: hash,
      agent_name: name,
      policy_id: policy?.id ?? null,
      grants: JSON.stringify(grants),
      owner_id,
      created_at: now,
      expires_at: now + INVITE_MS,
      claimed_at: null,
      agent_id: null,
    };
    await putInvite(db, made);
    note({ invite: made.id, policy: made.policy_id, grants: describeGranted(grants) });
    return made;
  });
  return { invite: readInvite(invite, now), secret };
}

/** Removes an invite: its secret is refused from then on. Throws ChangeRefused, also when it was used. */
export async function removeInvite(services: Changing, by: ChangingOwner, id: string): Promise<void> {
  const { organisation_id: organisationId } = by.owner;
  const known = (await listStored(services.broker.store.db, organisationId)).find((one) => one.id === id);
  if (!known) throw new ChangeRefused('not_found', 'The organisation has no such invite.');
  const change = { reason: 'invite_removed', detail: known.agent_name };
  await recordChange(services, by, change, async (db, note) => {
    if (!(await deleteInvite(db, organisationId, id)))
      throw new ChangeRefused('conflict', 'This invite was used: there is an agent now. Revoke the agent instead.');
    note({ invite: id });
  });
}

const inviteStatusAt = (
  { claimed_at, expires_at }: Pick<InviteTable, 'claimed_at' | 'expires_at'>,
  now: Instant,
): 'open' | 'claimed' | 'expired' => (claimed_at !== null ? 'claimed' : expires_at <= now ? 'expired' : 'open');

const inviteUnusable = () =>
  new ChangeRefused('token_used', 'This invite is unknown, used, revoked or expired. Ask an owner for another.');

/**
 * Creates the active agent of an invite, with its key, and records it: the invite is consumed. Of concurrent callers one wins. Scopes that the
 * platforms no longer have are dropped. Returns the agent.
 *
 * @throws ChangeRefused, or AuditUnavailable: then nothing is changed
 */
export async function bindInvite(
  services: Changing,
  secret: string,
  key: AgentPublicKey,
  correlationId: string,
): Promise<AgentTable> {
  const { store, clock } = services.broker;
  const hash = hashToken(secret, 'invite');
  const invite = hash === undefined ? undefined : await findInviteByToken(store.db, hash);
  if (!invite || inviteStatusAt(invite, clock()) !== 'open') throw inviteUnusable();
  const { organisation_id, owner_id, policy_id, agent_name: name } = invite;
  const ids = newIds();
  const by = { owner: { id: ids.agent_id, organisation_id }, how: 'token', correlationId } as const;
  return await recordInTurn(services, by, { reason: 'agent_invited', agent: ids }, async (db, note) => {
    const now = clock();
    if (!(await claimInvite(db, invite, ids.id, now))) throw inviteUnusable();
    // A governance file may have removed the policy meanwhile, and an agent without one is refused every call.
    if (policy_id !== null && !(await findPolicy(db, organisation_id, policy_id)))
      throw new ChangeRefused('token_used', 'The policy that this invite names was removed. Ask an owner for another.');
    await refuseDuplicateName(db, organisation_id, name, 'Ask an owner for an invite by another name.', 'token_used');
    await refuseSharedKey(db, { organisationId: organisation_id, id: ids.id }, key);
    const { in: granted, out: dropped } = await knownScopes(db, organisation_id, grantsOf(invite));
    const birth = { organisation_id, ...ids, name, owner_id, policy_id, origin: 'owner', status: 'active' } as const;
    await makeAgent(db, birth, key, granted, now);
    note({
      invite: invite.id,
      fingerprint: key.fingerprint,
      granted: describeGranted(granted),
      dropped: dropped.map(({ platformId, scopes }) => ({ platformId, scopes })),
    });
    return present(await findAgent(db, organisation_id, ids.id), 'agent');
  });
}
