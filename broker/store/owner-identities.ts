/** Owners by their identity at the identity provider. */
import { withdrawApprovals } from './decisions.ts';
import { endOwnersSessions, isEnded, type SessionMarks } from './ended-sessions.ts';
import { endOneTimeTokens } from './governance.ts';
import { deleteChannelsOfOwner } from './notice-channels.ts';
import { endMadeBy, foldEmail } from './organisations.ts';
import { listPasskeys, removePasskey } from './passkeys.ts';
import type { Db } from './store.ts';
import type { OwnerTable } from './tables/organisations.ts';

/** `subject`: issuer and `sub` in one string. `email`: only when verified by the provider. */
export type ProviderIdentity = { subject: string; email: string | undefined };

export type IdentifiedOwner = { owner: OwnerTable; organisationName: string; ended: boolean };

/**
 * Returns the owners with this identity, one per organisation, oldest organisation first, in one statement: owners bound to this subject, or
 * else invited by this address and not bound yet. `ended`: whether the session with these marks was ended there.
 */
export async function findIdentifiedOwners(
  db: Db,
  identity: ProviderIdentity,
  marks?: SessionMarks,
): Promise<IdentifiedOwner[]> {
  const found = await db
    .selectFrom('owners')
    .innerJoin('organisations', 'organisations.id', 'owners.organisation_id')
    .selectAll('owners')
    .select('organisations.name as organisation_name')
    .select((eb) => (marks ? isEnded(marks, eb) : eb.lit(false)).as('ended'))
    .where((eb) =>
      eb.or([
        eb('owners.oidc_subject', '=', identity.subject),
        ...(identity.email === undefined
          ? []
          : [
              eb.and([
                eb('owners.oidc_subject', 'is', null),
                // The address of the first-start owner is a placeholder: a provider account with that address is not this owner.
                eb('owners.origin', '!=', 'first_start'),
                eb('owners.email', '=', foldEmail(identity.email)),
              ]),
            ]),
      ]),
    )
    .orderBy('organisations.created_at')
    .orderBy('organisations.id')
    .execute();
  const known = new Set(found.filter((one) => one.oidc_subject !== null).map((one) => one.organisation_id));
  return found
    .filter((one) => one.oidc_subject !== null || !known.has(one.organisation_id))
    .map(({ organisation_name: organisationName, ended, ...owner }) => ({
      owner,
      organisationName,
      ended: Boolean(ended),
    }));
}

/**
 * Binds an invited owner to an account at the provider, once: from then on the address alone is not sufficient. Returns the owner;
 * undefined: a concurrent sign-in was first.
 */
export async function pinIdentity(
  db: Db,
  owner: Pick<OwnerTable, 'organisation_id' | 'id'>,
  subject: string,
): Promise<OwnerTable | undefined> {
  return await db
    .updateTable('owners')
    .set({ oidc_subject: subject })
    .where('organisation_id', '=', owner.organisation_id)
    .where('id', '=', owner.id)
    .where('oidc_subject', 'is', null)
    .returningAll()
    .executeTakeFirst();
}

/**
 * Unbinds the owner's provider account, so that the next verified sign-in with the address binds again; call it in a transaction. Nothing of
 * the previous person remains: approvals of calls that still wait for others, sessions and bearers from before `now`, unused sign-in links, passkeys,
 * notified devices, and unused things made as an admin end. Returns the number of calls that lost an approval.
 */
export async function forgetIdentity(
  db: Db,
  owner: Pick<OwnerTable, 'organisation_id' | 'id'>,
  now: number,
): Promise<{ approvalsWithdrawn: number }> {
  const approvalsWithdrawn = await withdrawApprovals(db, owner, now);
  await db
    .updateTable('owners')
    .set({ oidc_subject: null })
    .where('organisation_id', '=', owner.organisation_id)
    .where('id', '=', owner.id)
    .execute();
  await endOwnersSessions(db, owner, now);
  await endOneTimeTokens(db, { organisationId: owner.organisation_id, kind: 'sign_in', subject: owner.id }, now);
  await endMadeBy(db, owner);
  const ref = { organisationId: owner.organisation_id, ownerId: owner.id };
  for (const { id } of await listPasskeys(db, ref)) await removePasskey(db, ref, id);
  await deleteChannelsOfOwner(db, owner);
  return { approvalsWithdrawn };
}

/** Lists the owners whom an identity provider identifies as `subject` (`owners.oidc_subject`), at most one per organisation. */
export async function listOwnersOfSubject(db: Db, subject: string): Promise<OwnerTable[]> {
  return await db.selectFrom('owners').selectAll().where('oidc_subject', '=', subject).execute();
}
