import { keepAddress } from './former-owners.ts';
import type { Db } from './store.ts';
import type { NewOrganisation, NewOwner, OrganisationTable, OwnerTable } from './tables/organisations.ts';

/** Returns the organisation with this id; undefined when there is none. */
export async function findOrganisation(db: Db, id: string): Promise<OrganisationTable | undefined> {
  return await db.selectFrom('organisations').selectAll().where('id', '=', id).executeTakeFirst();
}

/** All organisations, oldest first. */
export async function listOrganisations(db: Db): Promise<OrganisationTable[]> {
  return await db.selectFrom('organisations').selectAll().orderBy('created_at').orderBy('id').execute();
}

/** Whether the broker has at most one organisation. */
export async function isOnlyOrganisation(db: Db): Promise<boolean> {
  return (await db.selectFrom('organisations').select('id').limit(2).execute()).length < 2;
}

/** Inserts an organisation. */
export async function putOrganisation(db: Db, organisation: NewOrganisation): Promise<void> {
  await db.insertInto('organisations').values(organisation).execute();
}

/** Changes an organisation's settings. */
export async function updateOrganisation(
  db: Db,
  id: string,
  change: Partial<
    Pick<
      OrganisationTable,
      | 'name'
      | 'publish_identity_documents'
      | 'approval_ttl_ms'
      | 'require_user_verification'
      | 'auto_suspend'
      | 'caller_issuers'
      | 'retention'
      | 'retention_seal'
      | 'passkey_deciders'
    >
  >,
): Promise<void> {
  await db.updateTable('organisations').set(change).where('id', '=', id).execute();
}

/** An organisation's owners, oldest first. */
export async function listOwners(db: Db, organisationId: string): Promise<OwnerTable[]> {
  return await db
    .selectFrom('owners')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

/** The number of admins of each organisation that has any, by its id. */
export async function countAdmins(db: Db): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('owners')
    .select((eb) => ['organisation_id', eb.fn.countAll().as('admins')])
    .where('role', '=', 'admin')
    .groupBy('organisation_id')
    .execute();
  return new Map(rows.map(({ organisation_id, admins }) => [organisation_id, Number(admins)]));
}

/** One owner by uuid, of any organisation; or undefined. */
export async function findOwner(db: Db, id: string): Promise<OwnerTable | undefined> {
  return await db.selectFrom('owners').selectAll().where('id', '=', id).executeTakeFirst();
}

/**
 * Normalises an e-mail address for storing and comparing: only A to Z are lower-cased. Unicode case folding would map other
 * letters, such as U+212A (KELVIN SIGN), to ASCII, and so make other addresses equal to an owner's.
 */
export const foldEmail = (email: string): string => email.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

/** Lists owners with this e-mail address, at most one per organisation, oldest organisation first, as at the sign-in. */
export async function findOwnersByEmail(db: Db, email: string): Promise<OwnerTable[]> {
  return await db
    .selectFrom('owners')
    .innerJoin('organisations', 'organisations.id', 'owners.organisation_id')
    .selectAll('owners')
    .where('owners.email', '=', foldEmail(email))
    .orderBy('organisations.created_at')
    .orderBy('organisations.id')
    .execute();
}

/**
 * Inserts an owner, or sets the role of the owner with this e-mail address; `role_by_groups` is reset unless given again. Call it in a
 * transaction. If the role is not admin, unused things that only admins make end. Returns the owner.
 */
export async function putOwner(db: Db, owner: NewOwner): Promise<OwnerTable> {
  const put = await db
    .insertInto('owners')
    .values({ ...owner, email: foldEmail(owner.email) })
    .onConflict((c) =>
      c
        .columns(['organisation_id', 'email'])
        .doUpdateSet({ role: owner.role, role_by_groups: owner.role_by_groups ?? 0 }),
    )
    .returningAll()
    .executeTakeFirstOrThrow();
  if (put.role !== 'admin') await endMadeBy(db, put);
  return put;
}

/** Stores when an owner signed in. False: the owner was removed, or the account of the identity provider that identifies the owner was unlinked. */
export async function noteSignIn(
  db: Db,
  { organisation_id, id, oidc_subject: subject }: Pick<OwnerTable, 'organisation_id' | 'id' | 'oidc_subject'>,
  at: number,
): Promise<boolean> {
  const noted = await db
    .updateTable('owners')
    .set({ last_sign_in_at: at })
    .where('organisation_id', '=', organisation_id)
    .where('id', '=', id)
    .$if(subject !== null, (query) => query.where('oidc_subject', '=', subject))
    .returning('id')
    .executeTakeFirst();
  return noted !== undefined;
}

/** Transfers what an owner has to another owner: agents (children included) with their registrations, and MCP authorisations. */
export async function transferToOwner(
  db: Db,
  { organisationId, from, to }: { organisationId: string; from: string; to: string },
): Promise<void> {
  await db
    .updateTable('registrations')
    .set({ owner_id: to })
    .where('organisation_id', '=', organisationId)
    .where('owner_id', '=', from)
    .where('agent_id', 'in', (eb) =>
      eb
        .selectFrom('agents')
        .select('agents.agent_id')
        .where('agents.organisation_id', '=', organisationId)
        .where('agents.owner_id', '=', from),
    )
    .execute();
  for (const table of ['agents', 'mcp_authorisations'] as const)
    await db
      .updateTable(table)
      .set({ owner_id: to })
      .where('organisation_id', '=', organisationId)
      .where('owner_id', '=', from)
      .execute();
}

/** Deletes what an owner made as an admin and is still unused: one-time tokens for others, bootstrap tokens, invites, authorisations of secrets. */
export async function endMadeBy(
  db: Db,
  { organisation_id, id }: Pick<OwnerTable, 'organisation_id' | 'id'>,
): Promise<void> {
  await db
    .deleteFrom('one_time_tokens')
    .where('organisation_id', '=', organisation_id)
    .where('made_by', '=', id)
    .where('used_at', 'is', null)
    .execute();
  await db
    .deleteFrom('invites')
    .where('organisation_id', '=', organisation_id)
    .where('owner_id', '=', id)
    .where('claimed_at', 'is', null)
    .execute();
  await db
    .deleteFrom('secret_authorizations')
    .where('organisation_id', '=', organisation_id)
    .where('owner_id', '=', id)
    .where('used_at', 'is', null)
    .execute();
}

/**
 * Deletes an owner, with the owner's passkeys, unused one-time tokens for others, invites, and registrations; call it in a transaction. Only the
 * address stays, as that of a former owner. A foreign key rejects this while the owner still has agents.
 */
export async function deleteOwner(db: Db, organisationId: string, id: string, now: number): Promise<void> {
  const owner = { organisation_id: organisationId, id };
  await keepAddress(db, owner, now);
  await endMadeBy(db, owner);
  for (const table of ['passkeys', 'registrations', 'invites', 'secret_authorizations'] as const)
    await db.deleteFrom(table).where('organisation_id', '=', organisationId).where('owner_id', '=', id).execute();
  await db.deleteFrom('owners').where('organisation_id', '=', organisationId).where('id', '=', id).execute();
}
