/** The owners of an organisation and their roles. */
import { type Changing, type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import type { Broker } from '../../broker.ts';
import { uuidv4 } from '../../crypto/ids.ts';
import { listAgents } from '../../store/agents.ts';
import { forgetAddress, listFormerOwners } from '../../store/former-owners.ts';
import {
  deleteOwner,
  findOwnersByEmail,
  foldEmail,
  listOwners as listStored,
  putOwner,
  transferToOwner,
} from '../../store/organisations.ts';
import { forgetIdentity } from '../../store/owner-identities.ts';
import { listPasskeysOfAll } from '../../store/passkeys.ts';
import { isRowFault } from '../../store/row-fault.ts';
import type { Db } from '../../store/store.ts';
import type { PasskeyTable } from '../../store/tables/approvals.ts';
import type { FormerOwnerTable, OwnerTable } from '../../store/tables/organisations.ts';
import { agentsNamed } from '../agents/find-agent.ts';
import { ChangeRefused } from '../refused.ts';
import { organisationNamed } from './organisations.ts';

/** Returns the passkeys of all owners, as admins of the organisation see them. */
export const passkeysByOwner = async (db: Db, organisationId: string): Promise<Map<string, PasskeyTable[]>> =>
  Map.groupBy(await listPasskeysOfAll(db, organisationId), ({ owner_id }) => owner_id);

/** Lists owners, oldest first. */
export const listOwners = (db: Db, organisationId: string): Promise<OwnerTable[]> => listStored(db, organisationId);

/** Lists removed owners with the addresses that they had, oldest removal first. */
export const listFormer = (db: Db, organisationId: string): Promise<FormerOwnerTable[]> =>
  listFormerOwners(db, organisationId);

/**
 * Returns the owner with this address, in the named organisation or else in the only one that has such an owner; without an address, the first admin of
 * the named organisation or of the only one, or where that was closed, its first owner. For the operator. Throws ChangeRefused, also where several organisations have such an owner: every admin can
 * invite every address, and what the operator applies for one organisation, secrets included, must not get to another one because of that.
 */
export async function ownerNamed(
  broker: Pick<Broker, 'store'>,
  { email, organisation }: { email?: string | undefined; organisation?: string | undefined },
): Promise<OwnerTable> {
  const { db } = broker.store;
  if (email === undefined) {
    const owners = await listStored(db, await organisationNamed(broker, organisation));
    const first = owners.find(({ role }) => role === 'admin') ?? owners[0];
    if (!first) throw new ChangeRefused('not_found', 'There is no owner yet.');
    return first;
  }
  const inside = organisation === undefined ? undefined : await organisationNamed(broker, organisation);
  const [found, ...more] = (await findOwnersByEmail(db, email)).filter(
    (one) => inside === undefined || one.organisation_id === inside,
  );
  if (more.length > 0)
    throw new ChangeRefused(
      'invalid_request',
      `${email} is an owner of several organisations: name one with --organisation. See: npx agent-broker organisation list`,
    );
  if (found) return found;
  const where = inside === undefined ? '' : ` --organisation ${JSON.stringify(organisation)}`;
  throw new ChangeRefused(
    'not_found',
    `No owner has the address ${email}. Add one with: npx agent-broker owner add ${email} --role admin${where}`,
  );
}

export type AddedOwner = {
  email: string;
  role: OwnerTable['role'];
  /**
   * Unlinks the account of the identity provider: whoever next signs in there with this verified address becomes this owner, and the former account
   * loses access.
   */
  forgetsIdentity: boolean;
};

/** Adds an owner, or changes an owner's role. Throws ChangeRefused, or AuditUnavailable: then nothing is changed. */
export async function addOwner(
  services: Changing,
  by: ChangingOwner,
  { email: address, role, forgetsIdentity }: AddedOwner,
): Promise<OwnerTable> {
  const { store, clock } = services.broker;
  const { organisation_id: organisationId } = by.owner;
  const email = foldEmail(address);
  const known = (await listStored(store.db, organisationId)).find((owner) => owner.email === email);
  const forgets = forgetsIdentity && known !== undefined;
  // Setting a role explicitly replaces one that came from groups of the identity provider.
  if (known?.role === role && known.role_by_groups === 0 && !forgets) return known;
  const reason = known ? 'owner_changed' : 'owner_added';
  return await recordInTurn(services, by, { reason, detail: email }, async (tx, note) => {
    const before = await listStored(tx, organisationId);
    const now = before.find((one) => one.email === email);
    if ((now === undefined) !== (known === undefined))
      throw new ChangeRefused(
        'conflict',
        'Concurrent update: another request changed this owner first. Nothing was changed; reload and retry.',
      );
    if (now && role !== 'admin') refuseLastAdmin(before, now);
    const owner = { organisation_id: organisationId, id: uuidv4(), email, role, origin: 'added' } as const;
    const put = await putOwner(tx, { ...owner, created_at: clock() });
    const ended = forgets ? await forgetIdentity(tx, put, clock()) : undefined;
    // Decisions of a removed owner who had the address are not those of the person who has it now.
    if (forgetsIdentity) await forgetAddress(tx, organisationId, email);
    note({
      owner: put.id,
      role: put.role,
      ...(now && now.role !== put.role && { before: now.role }),
      ...(ended && { identity: 'forgotten' }),
      ...(ended?.approvalsWithdrawn && { approvals_withdrawn: ended.approvalsWithdrawn }),
    });
    return put;
  });
}

/** Refuses a change that would leave the organisation without an admin. Changes of owners are serialised, so that two admins cannot remove each other. */
function refuseLastAdmin(owners: readonly OwnerTable[], owner: OwnerTable): void {
  if (owner.role === 'admin' && owners.every((one) => one.id === owner.id || one.role !== 'admin'))
    throw new ChangeRefused(
      'conflict',
      `${owner.email} is the last admin, so nobody would be left who can change anything. Make somebody else an admin first.`,
    );
}

const unknown = () => new ChangeRefused('not_found', 'The organisation has no such owner.');

/**
 * Removes an owner, with sessions and passkeys: in force from the next request. The owner's ended agents pass to the admin who removes them. Throws
 * ChangeRefused, or AuditUnavailable: then nothing is changed.
 */
export async function removeOwner(services: Changing, by: ChangingOwner, id: string): Promise<void> {
  const { id: heir, organisation_id: organisationId } = by.owner;
  const known = (await listStored(services.broker.store.db, organisationId)).find((owner) => owner.id === id);
  if (!known) throw unknown();
  if (id === heir)
    throw new ChangeRefused('conflict', 'You cannot remove yourself. Let another admin of the organisation do it.');
  await recordInTurn(services, by, { reason: 'owner_removed', detail: known.email }, async (tx, note) => {
    const owners = await listStored(tx, organisationId);
    const owner = owners.find((one) => one.id === id);
    if (!owner) throw unknown();
    refuseLastAdmin(owners, owner);
    const agents = (await listAgents(tx, organisationId, { deleted: true })).filter((one) => one.owner_id === id);
    const live = agents.filter(({ status }) => status !== 'revoked' && status !== 'deleted');
    if (live.length > 0)
      throw new ChangeRefused(
        'conflict',
        `${owner.email} answers for the agents ${agentsNamed(live)}. Revoke them or give them another owner first: npx agent-broker owner hand-over FROM TO, or Team in the console.`,
      );
    await endOwner(tx, owner, heir, services.broker.clock());
    note({ owner: id, role: owner.role, agents_passed_on: agents.length });
  });
}

/**
 * In a transaction, for owners and governance files: removes an owner who has no live agent. Ended agents, and the MCP clients that the owner
 * authorised, pass to `heir`.
 *
 * @throws ChangeRefused when something was assigned to the owner meanwhile
 */
export async function endOwner(
  tx: Db,
  { organisation_id: organisationId, id, email }: OwnerTable,
  heir: string,
  now: number,
): Promise<void> {
  await transferToOwner(tx, { organisationId, from: id, to: heir });
  await deleteOwner(tx, organisationId, id, now).catch((error) => {
    if (!isRowFault(error)) throw error;
    throw new ChangeRefused(
      'conflict',
      `Concurrent update: something was assigned to ${email} meanwhile. Nothing was changed; reload and retry.`,
    );
  });
}
