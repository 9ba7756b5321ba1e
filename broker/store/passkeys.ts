/** Passkeys of owners (specification, Passkey credential), and the held calls that they may decide. */

import type { Db } from './store.ts';
import type { ApprovalTable, PasskeyTable } from './tables/approvals.ts';
import type { OrganisationTable, OwnerTable } from './tables/organisations.ts';

type OwnerRef = { organisationId: string; ownerId: string };
type PasskeyRef = Pick<PasskeyTable, 'organisation_id' | 'id'>;

/** Roles that may decide. */
export const DECIDING: readonly OwnerTable['role'][] = ['admin', 'approver'];

/** The part of a held call that is readable by its id alone: what a decision by passkey needs. */
export type SignableApproval = Pick<
  ApprovalTable,
  'organisation_id' | 'id' | 'agent_id' | 'status' | 'expires_at' | 'request_hash' | 'corrected_at'
> &
  Pick<OrganisationTable, 'require_user_verification' | 'passkey_deciders'> &
  Pick<OwnerTable, 'role_by_groups' | 'last_sign_in_at'> & {
    agent_public_id: string;
    owner_id: string;
    owner_role: OwnerTable['role'];
  };

/** One held call of any organisation by its id, with the owner of its agent; or undefined. */
export async function findSignableApproval(db: Db, id: string): Promise<SignableApproval | undefined> {
  return await db
    .selectFrom('approvals as p')
    .innerJoin('agents as a', (j) =>
      j.onRef('a.organisation_id', '=', 'p.organisation_id').onRef('a.id', '=', 'p.agent_id'),
    )
    .innerJoin('owners as o', (j) =>
      j.onRef('o.organisation_id', '=', 'a.organisation_id').onRef('o.id', '=', 'a.owner_id'),
    )
    .innerJoin('organisations as g', 'g.id', 'p.organisation_id')
    .select(['p.organisation_id', 'p.id', 'p.agent_id', 'p.status', 'p.expires_at', 'p.request_hash', 'p.corrected_at'])
    .select(['a.agent_id as agent_public_id', 'o.id as owner_id', 'o.role as owner_role'])
    .select(['o.role_by_groups', 'o.last_sign_in_at'])
    .select(['g.require_user_verification', 'g.passkey_deciders'])
    .where('p.id', '=', id)
    .executeTakeFirst();
}

/** The passkeys with which the owner of this call's agent may decide it now, oldest first. */
export async function listSigningPasskeys(db: Db, approval: SignableApproval): Promise<PasskeyTable[]> {
  if (!DECIDING.includes(approval.owner_role)) return [];
  const all = await listPasskeys(db, { organisationId: approval.organisation_id, ownerId: approval.owner_id });
  return all.filter(({ status }) => status === 'active');
}

/** Lists an owner's passkeys, including disabled ones, oldest first. */
export async function listPasskeys(db: Db, { organisationId, ownerId }: OwnerRef): Promise<PasskeyTable[]> {
  return await db
    .selectFrom('passkeys')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('owner_id', '=', ownerId)
    .where('status', '<>', 'removed')
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

/** Lists the passkeys of all owners of an organisation, including disabled ones, oldest first. */
export async function listPasskeysOfAll(db: Db, organisationId: string): Promise<PasskeyTable[]> {
  return await db
    .selectFrom('passkeys')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('status', '<>', 'removed')
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

/** Returns an active passkey with the address of its owner; undefined: there is none with this id. */
export async function findPasskeyOf(
  db: Db,
  organisationId: string,
  id: string,
): Promise<(Pick<PasskeyTable, 'owner_id' | 'device_name'> & { email: string }) | undefined> {
  return await db
    .selectFrom('passkeys as p')
    .innerJoin('owners as o', (j) =>
      j.onRef('o.organisation_id', '=', 'p.organisation_id').onRef('o.id', '=', 'p.owner_id'),
    )
    .select(['p.owner_id', 'p.device_name', 'o.email'])
    .where('p.organisation_id', '=', organisationId)
    .where('p.id', '=', id)
    .where('p.status', '=', 'active')
    .executeTakeFirst();
}

/** Returns the active passkey with this credential id, of any organisation; undefined when there is none. */
export async function findActivePasskey(db: Db, credentialId: string): Promise<PasskeyTable | undefined> {
  return await db
    .selectFrom('passkeys')
    .selectAll()
    .where('credential_id', '=', credentialId)
    .where('status', '=', 'active')
    .executeTakeFirst();
}

/** Enrols a passkey. False: its credential id is already known, for any owner and in any status. */
export async function putPasskey(db: Db, passkey: PasskeyTable): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('passkeys')
    .values(passkey)
    .onConflict((c) => c.column('credential_id').doNothing())
    .executeTakeFirst();
  return numInsertedOrUpdatedRows === 1n;
}

/** What a passkey is used for: a call of this agent, by the agent's owner; any call of the organisation; or signing in. */
export type PasskeyUse = { counter: number; at: number } & ({ agentUuid: string } | { may: 'decide' | 'sign_in' });

/**
 * Stores a passkey's signature counter, if it is higher than the last one, or if both are 0, which means that the authenticator has no counter
 * (WebAuthn section 6.1.1), and if the owner still may do this. Only one of concurrent callers with the same counter gets true. A use other
 * than for one agent was asserted without a list of credentials, which shows that the passkey is discoverable.
 */
export async function usePasskey(db: Db, passkey: PasskeyRef, use: PasskeyUse): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('passkeys')
    .set({ counter: use.counter, last_used_at: use.at, ...('may' in use && { discoverable: 1 as const }) })
    .where('organisation_id', '=', passkey.organisation_id)
    .where('id', '=', passkey.id)
    .where('status', '=', 'active')
    .where((eb) => (use.counter === 0 ? eb('counter', '=', 0) : eb('counter', '<', use.counter)))
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom('owners as o')
          .select('o.id')
          .whereRef('o.organisation_id', '=', 'passkeys.organisation_id')
          .whereRef('o.id', '=', 'passkeys.owner_id')
          .$if(!('may' in use && use.may === 'sign_in'), (query) => query.where('o.role', 'in', DECIDING)),
      ),
    )
    .$if('agentUuid' in use, (query) =>
      query.where((eb) =>
        eb.exists(
          eb
            .selectFrom('agents as a')
            .select('a.id')
            .whereRef('a.organisation_id', '=', 'passkeys.organisation_id')
            .whereRef('a.owner_id', '=', 'passkeys.owner_id')
            .where('a.id', '=', 'agentUuid' in use ? use.agentUuid : ''),
        ),
      ),
    )
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

/** Disables a passkey whose counter did not increase (a clone). Returns it; undefined: the counter is fine, or the passkey is not active. */
export async function disableRegressed(
  db: Db,
  passkey: PasskeyRef,
  reported: number,
): Promise<PasskeyTable | undefined> {
  return await db
    .updateTable('passkeys')
    .set({ status: 'disabled' })
    .where('organisation_id', '=', passkey.organisation_id)
    .where('id', '=', passkey.id)
    .where('status', '=', 'active')
    .where('counter', '>', 0)
    .where('counter', '>=', reported)
    .returningAll()
    .executeTakeFirst();
}

/** Marks all passkeys with a counter as restored: their counters since the backup are unknown. */
export async function markRestoredCounters(tx: Db): Promise<void> {
  await tx
    .updateTable('passkeys')
    .set((eb) => ({ restored_counter: eb.ref('counter') }))
    .where('counter', '>', 0)
    .execute();
}

/** Removes the mark of a passkey. False: another process has removed it. */
export async function clearRestoredCounter(db: Db, passkey: PasskeyRef): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('passkeys')
    .set({ restored_counter: null })
    .where('organisation_id', '=', passkey.organisation_id)
    .where('id', '=', passkey.id)
    .where('restored_counter', 'is not', null)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

/** Renames an owner's passkey. Returns the updated row; undefined: the owner has none with this id. */
export async function renamePasskey(
  db: Db,
  owner: OwnerRef,
  id: string,
  deviceName: string,
): Promise<PasskeyTable | undefined> {
  return await db
    .updateTable('passkeys')
    .set({ device_name: deviceName })
    .where('organisation_id', '=', owner.organisationId)
    .where('owner_id', '=', owner.ownerId)
    .where('id', '=', id)
    .where('status', '<>', 'removed')
    .returningAll()
    .executeTakeFirst();
}

/**
 * Removes an owner's passkey. The credential id of a disabled one is kept, so that it cannot be enrolled again. Returns it; undefined: the
 * owner has none with this id.
 */
export async function removePasskey(db: Db, owner: OwnerRef, id: string): Promise<PasskeyTable | undefined> {
  const removed = await db
    .deleteFrom('passkeys')
    .where('organisation_id', '=', owner.organisationId)
    .where('owner_id', '=', owner.ownerId)
    .where('id', '=', id)
    .where('status', '=', 'active')
    .returningAll()
    .executeTakeFirst();
  if (removed) return removed;
  return await db
    .updateTable('passkeys')
    .set({ status: 'removed' })
    .where('organisation_id', '=', owner.organisationId)
    .where('owner_id', '=', owner.ownerId)
    .where('id', '=', id)
    .where('status', '=', 'disabled')
    .returningAll()
    .executeTakeFirst();
}
