/** Plans the organisation's own settings, and its owners. */

import { readOrganisationRow, writeSettings } from '../admin/organisations/organisation.ts';
import { endOwner } from '../admin/organisations/owners.ts';
import { difference, listDifference } from '../config-file/differences.ts';
import { listNames } from '../config-file/problems.ts';
import { uuidv4 } from '../crypto/ids.ts';
import type { CallerIssuer } from '../people/caller-issuer.ts';
import { KEEP_ALL } from '../policy/retention.ts';
import { putOwner } from '../store/organisations.ts';
import { DECIDING } from '../store/passkeys.ts';
import type { OwnerTable } from '../store/tables/organisations.ts';
import { addProblem, addStep, type Planning } from './planning.ts';

/** Formats one issuer with its terms in one line of a plan. */
const shownIssuer = ({ issuer, ...terms }: CallerIssuer): string => `${issuer} ${JSON.stringify(terms)}`;

export function planOrganisation(planning: Planning): void {
  const { present, organisationId } = planning;
  const { organisation } = present;
  const { document } = planning.governance;
  const { organisation: name = organisation.name, publish_identity_documents: publish } = document;
  if (present.takenNames.has(name)) {
    addProblem(planning, ['organisation'], `another organisation on this broker is called "${name}".`);
    return;
  }
  const before = readOrganisationRow(organisation);
  const { auto_suspend: rule, caller_issuers: issuers, retention, passkey_deciders } = document;
  const after = {
    name,
    publish_identity_documents: publish ?? before.publish_identity_documents,
    auto_suspend: rule === undefined ? before.auto_suspend : rule === false ? null : rule,
    caller_issuers: issuers ?? before.caller_issuers,
    retention: retention === false ? KEEP_ALL : (retention ?? before.retention),
    passkey_deciders: passkey_deciders ?? before.passkey_deciders,
  };
  const details = (
    ['name', 'publish_identity_documents', 'auto_suspend', 'retention', 'passkey_deciders'] as const
  ).flatMap((field) => difference(field, before[field] ?? false, after[field] ?? false));
  details.push(
    ...listDifference('caller_issuers', before.caller_issuers.map(shownIssuer), after.caller_issuers.map(shownIssuer)),
  );
  if (details.length === 0) return;
  addStep(planning, { action: 'update', kind: 'organisation', name, details }, (db) =>
    // A setting that the file does not name keeps its value, whoever set it.
    writeSettings(db, planning.vault, organisationId, { ...after, ...(retention === undefined && { retention }) }),
  );
}

/** Whether the file removes the owner. Owners that `first_start` or a person created are kept when the file does not name them. */
function isRemoved(planning: Planning, owner: OwnerTable): boolean {
  const { owners } = planning.governance.document;
  return owners !== undefined && owner.origin === 'governance' && !owners.some(({ email }) => email === owner.email);
}

export function planOwners(planning: Planning): void {
  const { present, organisationId, now } = planning;
  const future = present.owners.filter((owner) => !isRemoved(planning, owner)).map((owner) => ({ ...owner }));
  for (const { email, role } of planning.governance.document.owners ?? []) {
    const known = future.find((owner) => owner.email === email);
    // A role given by a file no longer follows groups, even when the role is the same.
    const before = known && (known.role_by_groups === 1 ? `${known.role}, by groups` : known.role);
    const details = difference('role', before, role);
    const owner: OwnerTable = known ?? {
      organisation_id: organisationId,
      id: uuidv4(),
      email,
      role,
      origin: 'governance',
      created_at: now,
      oidc_subject: null,
      last_sign_in_at: null,
      role_by_groups: 0,
    };
    owner.role = role;
    if (!known) future.push(owner);
    if (details.length > 0)
      addStep(planning, { action: known ? 'update' : 'create', kind: 'owner', name: email, details }, async (db) => {
        await putOwner(db, { ...owner, role_by_groups: 0 });
      });
  }
  for (const owner of future) planning.ownerIds.set(owner.email, owner.id);
  planning.deciders = future.filter(({ role }) => DECIDING.includes(role)).length;
  // Owners created by one apply are equally old: ordered by address, so that the next apply finds the same first admin.
  planning.firstAdmin = future
    .filter((owner) => owner.role === 'admin')
    .toSorted((a, b) => a.created_at - b.created_at || (a.email < b.email ? -1 : 1))[0];
  // Tokens that an owner made become invalid when the owner is removed, so those of this apply are attributed to the first admin.
  if (present.owners.some((owner) => owner.id === planning.madeBy && isRemoved(planning, owner)))
    planning.madeBy = planning.firstAdmin?.id ?? null;
  if (planning.firstAdmin === undefined)
    addProblem(
      planning,
      ['owners'],
      'no admin would be left, and then nobody could change anything; give one owner the role admin.',
    );
}

/** Runs after the agents: an owner is removed only when they have no live agent; their revoked agents pass to the first admin. */
export function planOwnerRemovals(planning: Planning): void {
  const { present, firstAdmin } = planning;
  for (const owner of present.owners.filter((one) => isRemoved(planning, one))) {
    const agents = planning.futureAgents.filter((agent) => agent.ownerId === owner.id);
    const live = agents.filter((agent) => agent.live).map((agent) => agent.name);
    if (live.length > 0)
      addProblem(
        planning,
        ['owners'],
        `"${owner.email}" is no longer listed but answers for the agents ${listNames(live)}; give them another owner, or list the owner.`,
      );
    if (live.length > 0 || firstAdmin === undefined) continue;
    const details = agents.map(
      (agent) => `owner of the revoked agent ${agent.name}: ${owner.email} → ${firstAdmin.email}`,
    );
    addStep(planning, { action: 'delete', kind: 'owner', name: owner.email, details }, (db) =>
      endOwner(db, owner, firstAdmin.id, planning.now),
    );
  }
}
