/** What an owner's word makes of a registration, in the transaction that puts it on record. */
import type { Broker } from '../broker.ts';
import type { JsonObject } from '../policy/facts.ts';
import { lockOrganisation } from '../store/governance.ts';
import { decideRegistration, type KnownRegistration } from '../store/registrations.ts';
import type { OwnerTable, ScopesOn } from '../store/schema.ts';
import type { Db } from '../store/store.ts';
import { choosePolicy, knownScopes, makeAgent, mergeScopes, refuseTakenName, splitScopes } from './new-agent.ts';
import { ChangeRefused } from './refused.ts';
import { CLAIM_MS } from './registration.ts';
import { type makeKeyPair, sealPrivateKey } from './registration-key.ts';

/** What is left out: all that was asked for, the organisation's default policy, the name that was asked for. */
export type Approving = { scopes?: readonly ScopesOn[]; policy?: string; name?: string };

/** Undoes the transaction of whoever was not first. */
export class DecidedBefore extends Error {}

/** The named owner decides, or an admin of that owner's organisation; whoever only reads does not. */
export function mayDecide(
  owner: Pick<OwnerTable, 'id' | 'organisation_id' | 'role'>,
  registration: { organisation_id: string | null; owner_id: string },
): registration is KnownRegistration {
  if (registration.organisation_id !== owner.organisation_id || owner.role === 'viewer') return false;
  return owner.role === 'admin' || registration.owner_id === owner.id;
}

/** The scopes that an approval is about. Throws ChangeRefused for one that nobody asked for. */
export function narrowed(registration: KnownRegistration, given: readonly ScopesOn[] | undefined): ScopesOn[] {
  const asked = JSON.parse(registration.requested_scopes) as ScopesOn[];
  if (given === undefined) return asked;
  const stands = (platformId: string, scope: string) =>
    asked.some((one) => one.platformId === platformId && one.scopes.includes(scope));
  const { in: narrow, out } = splitScopes(mergeScopes(given), stands);
  const [more] = out;
  if (more)
    throw new ChangeRefused(
      'invalid_request',
      `scopes: ${more.scopes[0]} on ${more.platformId} was not asked for. An approval narrows; grant more afterwards.`,
    );
  return narrow;
}

export type Deciding = {
  registration: KnownRegistration;
  /** Who decides. */
  by: Pick<OwnerTable, 'id' | 'role'>;
  auditId: string;
  /** Adds to what is on record. */
  note: (facts: JsonObject) => void;
};

/**
 * Makes the agent, under its policy, with those scopes that the organisation's platforms have. It is active once its key is
 * collected: until then nobody holds it.
 * `id`: the agent's uuid. Answers what was granted and what was dropped. Throws DecidedBefore, or ChangeRefused.
 */
export async function approveRegistration(
  { clock, vault }: Pick<Broker, 'clock' | 'vault'>,
  db: Db,
  { registration, by, auditId, note }: Deciding,
  { name = registration.agent_name, policy: policyName, scopes }: Approving & { scopes: readonly ScopesOn[] },
  { id, publicKey, privatePem }: { id: string } & Awaited<ReturnType<typeof makeKeyPair>>,
): Promise<{ granted: ScopesOn[]; dropped: ScopesOn[] }> {
  const now = clock();
  const { organisation_id } = registration;
  await lockOrganisation(db, organisation_id);
  const { in: granted, out: dropped } = await knownScopes(db, organisation_id, scopes);
  const decided = await decideRegistration(db, registration, {
    status: 'approved',
    at: now,
    by: by.id,
    auditId,
    granted: JSON.stringify(granted),
    private_key: sealPrivateKey({ vault }, registration, privatePem),
    claim_until: now + CLAIM_MS,
  });
  if (!decided) throw new DecidedBefore();
  const policy = await choosePolicy(db, organisation_id, policyName);
  // Which policy an agent is under changes what it may do: an admin says that, here as for every agent.
  if (by.role !== 'admin' && policy?.id !== (await choosePolicy(db, organisation_id, undefined))?.id)
    throw new ChangeRefused(
      'forbidden',
      'policy: only an admin chooses one. Leave it out, and the agent is under the default policy.',
    );
  await refuseTakenName(db, organisation_id, name, 'Approve this one with another name ("name").');
  const { owner_id, agent_id } = registration;
  const birth = { organisation_id, id, agent_id, name, owner_id, policy_id: policy?.id ?? null };
  await makeAgent(db, { ...birth, origin: 'registration', status: 'pending' }, publicKey, granted, now);
  note({
    registration: registration.id,
    fingerprint: publicKey.fingerprint,
    policy: policy ? { id: policy.id, name: policy.name, version: policy.version } : null,
    granted: JSON.parse(JSON.stringify(granted)),
    dropped: JSON.parse(JSON.stringify(dropped)),
  });
  return { granted, dropped };
}

/** Throws DecidedBefore. */
export async function rejectRegistration(
  { clock }: Pick<Broker, 'clock'>,
  db: Db,
  { registration, by, auditId, note }: Deciding,
): Promise<void> {
  const rejected = await decideRegistration(db, registration, {
    status: 'rejected',
    at: clock(),
    by: by.id,
    auditId,
    granted: null,
    private_key: null,
    claim_until: null,
  });
  if (!rejected) throw new DecidedBefore();
  note({ registration: registration.id, agent_id: registration.agent_id });
}
