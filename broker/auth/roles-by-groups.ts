/** Roles of owners by the groups that the identity provider says a person is in (OIDC_ROLES). */

import { byBroker, type Changing, type ChangingOwner, recordInTurn } from '../audit/record-change.ts';
import type { Broker, Uses } from '../broker.ts';
import { uuidv4 } from '../crypto/ids.ts';
import type { Roles, RolesByGroups } from '../environment/oidc.ts';
import type { Instant } from '../policy/facts.ts';
import { endPersonsSessions } from '../store/ended-sessions.ts';
import { deleteChannelsOfOwner } from '../store/notice-channels.ts';
import { foldEmail, listOrganisations, listOwners, putOwner } from '../store/organisations.ts';
import { findIdentifiedOwners } from '../store/owner-identities.ts';
import type { OwnerTable } from '../store/tables/organisations.ts';
import { rollback } from '../store/transaction.ts';
import { providerSessionOf } from './provider-session.ts';
import type { SignedIn } from './provider-types.ts';

type Role = OwnerTable['role'];

export const HIGHEST_FIRST = ['admin', 'approver', 'viewer'] as const satisfies Role[];

/** Reads the groups of a claim: a list of names, or a single one; undefined when the claim is absent. */
export function groupsIn(
  claims: Record<string, unknown>,
  { claim }: Pick<RolesByGroups, 'claim'>,
): readonly string[] | undefined {
  const said = claims[claim];
  if (said === undefined) return undefined;
  return [said].flat().filter((group) => typeof group === 'string');
}

/** Returns the highest role that any of the groups has; undefined when none has one. */
export const roleOf = (roles: Roles, groups: readonly string[]): Role | undefined =>
  HIGHEST_FIRST.find((role) => roles[role]?.some((group) => groups.includes(group)));

/**
 * How long after the last sign-in a role that comes from groups stays valid for decisions without a session, for notifications on devices, and for
 * bearers that name no groups.
 */
export const ROLE_RETENTION_MS = 30 * 24 * 3600_000;

/**
 * Whether the last sign-in of an owner with a role from groups is too old for a decision without a session, or for a bearer that names no groups: a
 * person
 * who left the groups cannot sign in any more, but keeps the passkey.
 */
export const mustSignInAgain = (
  { role_by_groups, last_sign_in_at }: Pick<OwnerTable, 'role_by_groups' | 'last_sign_in_at'>,
  now: Instant,
): boolean => role_by_groups === 1 && (last_sign_in_at ?? 0) + ROLE_RETENTION_MS <= now;

/** `noRoleIn`: the organisation in which the person's role comes from groups, when their groups no longer give one. */
export type Settled = { noRoleIn?: string };

/**
 * Gives a person who signs in the role of their groups, recorded in the audit: creates an owner for a new person, and changes a role that came from
 * groups. A role given by an admin, the operator or a governance file is kept. A person whose groups no longer give a role becomes a viewer, and their
 * sessions and notification devices are removed. The last admin stays admin.
 *
 * @throws AuditUnavailable, and then nothing is changed
 */
export async function settleRole(
  services: Changing & Uses<'config'>,
  { identity, groups = [], claims }: SignedIn,
  correlationId: string,
): Promise<Settled> {
  const { broker } = services;
  const { oidc } = broker.config;
  if (!oidc?.groups) return {};
  const organisationId = await organisationOf(broker, oidc.groups.organisation);
  if (organisationId === undefined) {
    // Nobody else would notice that roles do not follow the groups, for example after the store was replaced.
    if (oidc.groups.organisation !== undefined)
      broker.log.error(
        { organisation: oidc.groups.organisation },
        'there is no organisation with the id in OIDC_ROLES_ORGANISATION: groups give no roles, and roles from groups stay as they are',
      );
    return {};
  }
  const role = roleOf(oidc.groups.roles, groups);
  const known = (await findIdentifiedOwners(broker.store.db, identity)).find(
    ({ owner }) => owner.organisation_id === organisationId,
  )?.owner;
  const by = byBroker(organisationId, correlationId);
  if (!known) {
    const { email } = identity;
    if (role !== undefined && email !== undefined) await addByGroups(services, by, { email, role });
    return {};
  }
  if (known.role_by_groups !== 1) return {};
  if (known.role !== (role ?? 'viewer')) await changeByGroups(services, by, known, role ?? 'viewer');
  if (role !== undefined) return {};
  const { db } = broker.store;
  await endPersonsSessions(db, known, providerSessionOf(oidc.issuer, claims).person, broker.clock());
  await deleteChannelsOfOwner(db, known);
  return { noRoleIn: organisationId };
}

async function addByGroups(
  services: Changing,
  by: ChangingOwner,
  { email, role }: Pick<OwnerTable, 'email' | 'role'>,
): Promise<void> {
  const { organisation_id } = by.owner;
  await recordInTurn(services, by, { reason: 'owner_added', detail: email }, async (tx, note) => {
    // An address that belongs to another owner is not taken over.
    const isTaken = (await listOwners(tx, organisation_id)).some((owner) => owner.email === foldEmail(email));
    if (isTaken) return rollback('taken');
    const row = { organisation_id, id: uuidv4(), email, role, origin: 'added', role_by_groups: 1 } as const;
    const { id } = await putOwner(tx, { ...row, created_at: services.broker.clock() });
    note({ owner: id, role, by_groups: true });
    return id;
  });
}

async function changeByGroups(services: Changing, by: ChangingOwner, owner: OwnerTable, role: Role): Promise<void> {
  const kept = await recordInTurn(services, by, { reason: 'owner_changed', detail: owner.email }, async (tx, note) => {
    const owners = await listOwners(tx, owner.organisation_id);
    const now = owners.find(({ id }) => id === owner.id);
    // Since the sign-in began, an admin may have removed the owner, or set a role.
    if (now?.role_by_groups !== 1) return rollback('changed meanwhile');
    if (owners.every((one) => one.id === now.id || one.role !== 'admin')) return rollback('last admin');
    await putOwner(tx, { ...now, role, role_by_groups: 1 });
    note({ owner: now.id, role, before: now.role, by_groups: true });
    return undefined;
  });
  if (kept?.reason === 'last admin')
    services.broker.log.warn(
      { owner: owner.id },
      'the groups of the last admin no longer give the role admin; the role was kept',
    );
}

/** Returns the id if there is an organisation with it; without an id that of the oldest organisation. Undefined: there is none. */
async function organisationOf(
  { store }: Pick<Broker, 'store'>,
  chosen: string | undefined,
): Promise<string | undefined> {
  return (await listOrganisations(store.db)).find(({ id }) => chosen === undefined || id === chosen)?.id;
}
