/** The organisations of a broker. Each begins with one admin, and the policy `default`. */
import { type Changing, type ChangingOwner, recordChange } from '../../audit/record-change.ts';
import type { Broker } from '../../broker.ts';
import { uuidv4 } from '../../crypto/ids.ts';
import { DEFAULT_POLICY, DEFAULT_POLICY_RULES } from '../../policy/default-policy.ts';
import type { Instant } from '../../policy/facts.ts';
import { putPolicy } from '../../store/governed-versions.ts';
import {
  countAdmins,
  findOrganisation,
  foldEmail,
  listOrganisations as listStored,
  putOrganisation,
  putOwner,
} from '../../store/organisations.ts';
import { isRowFault } from '../../store/row-fault.ts';
import type { Db } from '../../store/store.ts';
import type { OrganisationTable, OwnerTable } from '../../store/tables/organisations.ts';
import { ChangeRefused } from '../refused.ts';

const nameTaken = (name: string) =>
  new ChangeRefused('conflict', `There is an organisation "${name}" already; choose another name.`);

const noSuchOrganisation = () =>
  new ChangeRefused('not_found', 'There is no such organisation. See: npx agent-broker organisation list');

/** Default time for which a held call waits. */
const APPROVAL_TTL_MS = 24 * 3_600_000;

/**
 * Creates an organisation with its first owner, who is an admin and whom no governance file removes. Runs in a transaction, which
 * has to be rolled back when this throws.
 *
 * @throws ChangeRefused when an organisation of this name exists already
 */
export async function createOrganisation(
  db: Db,
  { id = uuidv4(), name, ownerEmail }: { id?: string; name: string; ownerEmail: string },
  now: Instant,
): Promise<{ organisation: OrganisationTable; owner: OwnerTable }> {
  const others = await listStored(db);
  if (others.some((other) => other.name === name)) throw nameTaken(name);
  const organisation: OrganisationTable = {
    id,
    name,
    publish_identity_documents: 0,
    guardrails_version: 0,
    approval_ttl_ms: APPROVAL_TTL_MS,
    created_at: now,
    require_user_verification: 0,
    auto_suspend: null,
    caller_issuers: null,
    agents_stopped: null,
    restored: null,
    retention: null,
    retention_seal: null,
    passkey_deciders: 'default',
  };
  await putOrganisation(db, organisation);
  const owner = await putOwner(db, {
    organisation_id: id,
    id: uuidv4(),
    email: ownerEmail,
    role: 'admin',
    origin: 'first_start',
    created_at: now,
  });
  const rules = JSON.stringify(DEFAULT_POLICY_RULES);
  await putPolicy(db, { organisationId: id, id: uuidv4(), name: DEFAULT_POLICY, rules }, now);
  return { organisation, owner };
}

/**
 * Adds an organisation to a broker, on record as `organisation_created`. For the operator.
 *
 * @param ownerEmail of its first admin
 * @throws ChangeRefused when the name is taken, or AuditUnavailable: then there is no new organisation
 */
export async function addOrganisation(
  services: Changing,
  { name, ownerEmail, correlationId }: { name: string; ownerEmail: string; correlationId: string },
): Promise<{ organisation: OrganisationTable; owner: OwnerTable }> {
  const id = uuidv4();
  const by: ChangingOwner = { owner: { id: 'operator', organisation_id: id }, how: 'local', correlationId };
  const made = { id, name, ownerEmail: foldEmail(ownerEmail) };
  try {
    return await recordChange(services, by, { reason: 'organisation_created', detail: name }, async (db, note) => {
      const created = await createOrganisation(db, made, services.broker.clock());
      note({ owner: created.owner.id, role: created.owner.role });
      return created;
    });
  } catch (error) {
    // Another request of the same name, at the same time.
    if (isRowFault(error)) throw nameTaken(name);
    throw error;
  }
}

/** Lists all organisations, oldest first, with the number of their admins: one without was closed. */
export async function listOrganisations(db: Db): Promise<(OrganisationTable & { admins: number })[]> {
  const admins = await countAdmins(db);
  return (await listStored(db)).map((one) => ({ ...one, admins: admins.get(one.id) ?? 0 }));
}

/** Returns the organisation with this id. Throws ChangeRefused. */
export async function organisationWithId({ store }: Pick<Broker, 'store'>, id: string): Promise<OrganisationTable> {
  const found = await findOrganisation(store.db, id);
  if (!found) throw noSuchOrganisation();
  return found;
}

/**
 * Returns the id of the organisation with this id, or else this name; without either, of the only one. An admin can name an organisation like the id of
 * another one. Throws ChangeRefused.
 */
export async function organisationNamed({ store }: Pick<Broker, 'store'>, name: string | undefined): Promise<string> {
  const organisations = await listStored(store.db);
  const chosen =
    name === undefined
      ? organisations[0]
      : (organisations.find((one) => one.id === name.toLowerCase()) ?? organisations.find((one) => one.name === name));
  if (!chosen) throw noSuchOrganisation();
  if (name === undefined && organisations.length > 1)
    throw new ChangeRefused(
      'invalid_request',
      'There are several organisations: name one with --organisation, or an owner with --email.',
    );
  return chosen.id;
}
