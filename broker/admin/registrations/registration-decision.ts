/** Decides registrations: recorded in the transaction that decides. */

import { statusAt } from '../../audit/approval-state.ts';
import { type Changing, type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import { siteOf } from '../../auth/client-address.ts';
import type { Uses } from '../../broker.ts';
import { uuidv4 } from '../../crypto/ids.ts';
import { present } from '../../runtime/present.ts';
import { listPendingRegistrations } from '../../store/open-registrations.ts';
import { findRegistration, type KnownRegistration, decideRegistration as settle } from '../../store/registrations.ts';
import type { OwnerTable } from '../../store/tables/organisations.ts';
import type { RegistrationTable, ScopesOn } from '../../store/tables/registrations.ts';
import { RolledBack, rollback } from '../../store/transaction.ts';
import {
  choosePolicy,
  knownScopes,
  makeAgent,
  mergeScopes,
  refuseDuplicateName,
  splitScopes,
} from '../agents/new-agent.ts';
import { ChangeRefused } from '../refused.ts';
import { mayDecide, type ReadRegistration, readRegistrationRow, requestedScopes } from './read-registration.ts';
import { CLAIM_MS } from './registration.ts';
import { makeKeyPair, sealPrivateKey } from './registration-key.ts';

/** Defaults: all requested scopes, the organisation's default policy, the requested name. */
export type Approving = { scopes?: readonly ScopesOn[]; policy?: string; name?: string };

export type DecidingOwner = ChangingOwner & { owner: Pick<OwnerTable, 'id' | 'organisation_id' | 'role'> };

export type RegistrationDecided = {
  registration: ReadRegistration;
  /** For an approval: scopes that no platform of the organisation has, and that were not granted. */
  dropped?: ScopesOn[];
};

/**
 * Decides a registration, and returns it updated. An approval creates the agent, under its policy, with those scopes that the organisation's
 * platforms have; the agent becomes active when its key is collected. Of concurrent decisions one wins.
 *
 * @throws ChangeRefused, AuthorNotAllowed or AuditUnavailable: then nothing is decided
 */
export async function decideRegistration(
  services: Changing & Uses<'vault'>,
  by: DecidingOwner,
  found: RegistrationTable,
  word: { status: 'rejected' } | ({ status: 'approved' } & Approving),
): Promise<RegistrationDecided> {
  const { broker, changes } = services;
  // A registration for an unknown owner is answered like one for another owner, so that nobody learns which owners exist.
  if (!mayDecide(by.owner, found))
    throw new ChangeRefused(
      'forbidden',
      'Only the owner who was asked, or an admin of that organisation, can decide this registration.',
    );
  refuseDecided(found, broker.clock());
  const decided =
    word.status === 'approved' ? await approve(services, by, found, word) : await reject(services, by, found);
  const find = () => findRegistration(broker.store.db, found.organisation_id, found.id);
  if (decided instanceof RolledBack) {
    const after = await find();
    if (after) refuseDecided(after, broker.clock());
    throw expired();
  }
  changes.tell({ organisation_id: found.organisation_id, id: found.id });
  const registration = readRegistrationRow(present(await find(), 'registration'), by.owner, broker.clock());
  return { registration, ...decided };
}

/** The most registrations that one request rejects: each has its own audit row and receipt. */
export const MAX_REJECTED = 200;

/**
 * Rejects the pending registrations from one network that the owner may decide, oldest first, MAX_REJECTED at most. Returns the ids rejected, and
 * whether more are pending.
 *
 * @param network in the form of `siteOf`
 * @throws AuditUnavailable, or AuthorNotAllowed: the registrations before are rejected already
 */
export async function rejectNetwork(
  services: Changing,
  by: DecidingOwner,
  network: string,
): Promise<{ rejected: string[]; remaining: boolean }> {
  const { store, clock } = services.broker;
  const waiting = await listPendingRegistrations(store.db, by.owner.organisation_id, clock());
  const theirs = waiting.filter((one) => siteOf(one.source) === network && mayDecide(by.owner, one));
  const rejected: string[] = [];
  for (const one of theirs.slice(0, MAX_REJECTED)) {
    // Otherwise another owner decided it first, or it expired.
    if ((await reject(services, by, one)) instanceof RolledBack) continue;
    services.changes.tell({ organisation_id: one.organisation_id, id: one.id });
    rejected.push(one.id);
  }
  return { rejected, remaining: theirs.length > MAX_REJECTED };
}

const expired = () =>
  new ChangeRefused('request_expired', 'Nobody decided this registration in time; the agent has to register again.');

function refuseDecided(found: RegistrationTable, now: number): void {
  const status = statusAt(found, now);
  if (status === 'expired') throw expired();
  if (status !== 'pending')
    throw new ChangeRefused('already_decided', `This registration was ${status} already.`, { status });
}

const DECIDED_BEFORE = 'decided_before';

async function approve(
  { broker, ...services }: Changing & Uses<'vault'>,
  by: DecidingOwner,
  registration: KnownRegistration,
  { name = registration.agent_name, policy: policyName, scopes: given }: Approving,
): Promise<{ dropped: ScopesOn[] } | RolledBack<typeof DECIDED_BEFORE>> {
  const { organisation_id, owner_id, agent_id } = registration;
  const scopes = narrowed(registration, given);
  const { publicKey, privatePem } = await makeKeyPair();
  const id = uuidv4();
  const change = { reason: 'registration_approved', detail: registration.agent_name, agent: { id, agent_id } };
  return await recordInTurn({ broker, ...services }, by, change, async (tx, note, auditId) => {
    const now = broker.clock();
    const { in: granted, out: dropped } = await knownScopes(tx, organisation_id, scopes);
    const decided = await settle(tx, registration, {
      status: 'approved',
      at: now,
      by: by.owner.id,
      auditId,
      granted: JSON.stringify(granted),
      private_key: sealPrivateKey(broker, registration, privatePem),
      claim_until: now + CLAIM_MS,
    });
    if (!decided) return rollback(DECIDED_BEFORE);
    const policy = await choosePolicy(tx, organisation_id, policyName);
    // The policy determines what an agent may do, so choosing one takes an admin, as for every agent.
    if (by.owner.role !== 'admin' && policy?.id !== (await choosePolicy(tx, organisation_id, undefined))?.id)
      throw new ChangeRefused(
        'forbidden',
        'policy: only an admin can choose one. Leave it out to use the default policy.',
      );
    await refuseDuplicateName(tx, organisation_id, name, 'Approve this one with another name ("name").');
    const birth = { organisation_id, id, agent_id, name, owner_id, policy_id: policy?.id ?? null };
    await makeAgent(tx, { ...birth, origin: 'registration', status: 'pending' }, publicKey, granted, now);
    note({
      registration: registration.id,
      fingerprint: publicKey.fingerprint,
      policy: policy ? { id: policy.id, name: policy.name, version: policy.version } : null,
      granted,
      dropped,
    });
    await services.changes.announce(tx, registration);
    return { dropped };
  });
}

/** Returns the approved scopes. Throws ChangeRefused for one that was not requested. */
function narrowed(registration: KnownRegistration, given: readonly ScopesOn[] | undefined): ScopesOn[] {
  const asked = requestedScopes(registration);
  if (given === undefined) return asked;
  const stands = (platformId: string, scope: string) =>
    asked.some((one) => one.platformId === platformId && one.scopes.includes(scope));
  const { in: narrow, out } = splitScopes(mergeScopes(given), stands);
  const [more] = out;
  if (more)
    throw new ChangeRefused(
      'invalid_request',
      `scopes: ${more.scopes[0]} on ${more.platformId} was not requested. An approval cannot grant more than was requested; grant more afterwards.`,
    );
  return narrow;
}

async function reject(
  services: Changing,
  by: DecidingOwner,
  registration: KnownRegistration,
): Promise<undefined | RolledBack<typeof DECIDED_BEFORE>> {
  const change = { reason: 'registration_rejected', detail: registration.agent_name };
  return await recordInTurn(services, by, change, async (tx, note, auditId) => {
    const nothing = { granted: null, private_key: null, claim_until: null };
    const decision = { status: 'rejected', at: services.broker.clock(), by: by.owner.id, auditId, ...nothing } as const;
    if (!(await settle(tx, registration, decision))) return rollback(DECIDED_BEFORE);
    note({ registration: registration.id, agent_id: registration.agent_id });
    await services.changes.announce(tx, registration);
    return undefined;
  });
}
