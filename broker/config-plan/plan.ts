/** The difference between a governance file and the store, in the order in which `apply` executes it. */

import type { Broker } from '../broker.ts';
import { documentConnections, type ReferenceTargets, referencesOf } from '../config-file/check-references.ts';
import type { Governance } from '../config-file/governance.ts';
import { type Problem, placeFindings } from '../config-file/problems.ts';
import { type Resolved, secretReferences } from '../config-file/secrets.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { Instant } from '../policy/facts.ts';
import { inSlices, pacer } from '../runtime/pace.ts';
import { findGovernanceVersion } from '../store/governance.ts';
import { findOrganisation } from '../store/organisations.ts';
import type { Db } from '../store/store.ts';
import type { OrganisationTable } from '../store/tables/organisations.ts';
import type { Vault } from '../vault.ts';
import { checkDeciding } from './check-deciding.ts';
import { planAgents } from './plan-agents.ts';
import { planAuditSinks } from './plan-audit-sinks.ts';
import { planChannels } from './plan-channels.ts';
import { planConnectionRemovals, planConnections } from './plan-connections.ts';
import { planOrganisation, planOwnerRemovals, planOwners } from './plan-organisation.ts';
import { planPlatformSecrets } from './plan-platform-secrets.ts';
import { planPlatformRemovals, planPlatforms } from './plan-platforms.ts';
import { planGuardrails, planPolicies, planPolicyRemovals } from './plan-policies.ts';
import type { Plan, Planning } from './planning.ts';
import { loadPresent, type Present } from './present.ts';

export type PlanResult = { ok: true; plan: Plan } | { ok: false; problems: Problem[] };

/**
 * `version`: of the current governance data; applying the plan requires the same version, so that only what was shown is applied. `needs`:
 * references whose values are required to apply the file and did not come with it, where the plan keeps secrets.
 */
export type ShownPlan = { ok: true; plan: Plan; version: string; needs: string[] } | { ok: false; problems: Problem[] };

/** Returns a version of all data that a governance file describes as clients see it: '' before the first change. */
export const shownVersion = (version: string | undefined): string => version ?? '';

/** The organisation is not in the store; the session that made the request belonged to one that was. */
export class UnknownOrganisation extends Error {
  constructor(id: string) {
    super(`There is no organisation ${id}.`);
    this.name = 'UnknownOrganisation';
  }
}

export type PlanOptions = {
  /** The broker is starting: see `ApplyOptions`. */
  atStart?: boolean;
  /**
   * By default true. Otherwise the plan needs no values of secrets, and does not depend on them: a plan that compared them would
   * reveal to a viewer whether a guess is the stored secret.
   */
  comparesSecrets?: boolean;
  /** By default false; see `Planning`. */
  keepsSecrets?: boolean;
  /** By default true; see `Planning`. */
  mayLimitRepos?: boolean;
  /** By default true; see `Planning`. */
  hasAuditFolder?: boolean;
  /** By default null; see `Planning`. */
  madeBy?: string;
};

/**
 * Returns what applying a file would change; changes nothing.
 *
 * @param resolved the values of the file's references (`resolveReferences`); secrets are compared, never shown
 * @returns the plan, or every reason why the file cannot be applied
 * @throws UnknownOrganisation
 */
export async function planGovernance(
  broker: Pick<Broker, 'store' | 'vault'>,
  organisationId: string,
  governance: Governance,
  resolved: Resolved,
  now: Instant,
  options: Omit<PlanOptions, 'atStart'> = {},
): Promise<ShownPlan> {
  // Read before everything else, also before the organisation's row: a later concurrent change then makes this the plan of an outdated version.
  const version = shownVersion(await findGovernanceVersion(broker.store.db, organisationId));
  const organisation = await findOrganisation(broker.store.db, organisationId);
  if (!organisation) throw new UnknownOrganisation(organisationId);
  const planning = await planOn(broker.store.db, broker.vault, organisation, governance, resolved, now, {
    ...options,
    showsMissing: options.keepsSecrets ?? false,
  });
  const result = await finish(planning);
  return result.ok ? { ...result, version, needs: [...(planning.missing ?? [])] } : result;
}

/** Makes a plan with its steps, on a database or in a transaction. */
export async function planOn(
  db: Db,
  vault: Vault,
  organisation: OrganisationTable,
  governance: Governance,
  resolved: Resolved,
  now: Instant,
  {
    atStart = false,
    comparesSecrets = true,
    keepsSecrets = false,
    mayLimitRepos = true,
    hasAuditFolder = true,
    madeBy,
    showsMissing = false,
  }: PlanOptions & { showsMissing?: boolean } = {},
): Promise<Planning> {
  const present = await loadPresent(db, organisation, now);
  const planning: Planning = {
    governance,
    present,
    resolved,
    comparesSecrets,
    keepsSecrets,
    missing: showsMissing ? new Set() : undefined,
    vault,
    organisationId: organisation.id,
    now,
    madeBy: madeBy ?? null,
    mayLimitRepos,
    hasAuditFolder,
    atStart,
    steps: [],
    newRows: { policies: [], policy_versions: [], agents: [], keyless: [], workloads: [], trusting: [], grants: [] },
    together: { revoked: [], removedGrants: [], changedGrants: [], reassigned: new Map() },
    stepsOfAgents: 0,
    problems: [],
    warnings: [],
    adopted: [],
    ownerIds: new Map(),
    firstAdmin: undefined,
    deciders: 0,
    policyIds: new Map(),
    connectionIds: new Map(),
    futureAgents: [],
    givenKeys: new Map(),
    futureGrants: [],
  };
  const rest = pacer();
  await rest();
  planOrganisation(planning);
  planOwners(planning);
  await checkNames(planning, present, rest);
  await rest();
  planPlatforms(planning);
  planPlatformSecrets(planning);
  if (!comparesSecrets) warnOfSecrets(planning);
  await planPolicies(planning, rest);
  await rest();
  planGuardrails(planning);
  planConnections(planning);
  planChannels(planning);
  planAuditSinks(planning);
  checkDeciding(planning);
  await planAgents(planning, rest);
  await rest();
  planning.stepsOfAgents = planning.steps.length;
  planConnectionRemovals(planning);
  planPlatformRemovals(planning);
  planPolicyRemovals(planning);
  planOwnerRemovals(planning);
  return planning;
}

/** Returns the plan for people, or its problems. */
export async function finish({ governance, problems, warnings, steps }: Planning): Promise<PlanResult> {
  const place = governance.place ?? (async (findings) => placeFindings(governance.source, findings));
  if (problems.length > 0) return { ok: false, problems: await place(problems) };
  const all = [...governance.warnings, ...(await place(warnings))];
  const distinct = [...new Map(all.map((warning) => [JSON.stringify(warning), warning])).values()];
  return { ok: true, plan: { changes: steps.map((step) => step.change), warnings: distinct } };
}

function warnOfSecrets(planning: Planning): void {
  const secrets = secretReferences(planning.governance);
  if (secrets.length === 0) return;
  const message = `${secrets.length === 1 ? 'its secret was' : `its ${secrets.length} secrets were`} not compared with what is stored: an admin's plan says whether applying it changes them.`;
  planning.warnings.push({ path: [], message });
}

/** Checks names that sections of the file use: in the file where it has the section, otherwise in the store. */
async function checkNames(planning: Planning, present: Present, rest: () => Promise<void>): Promise<void> {
  const { document, manifests } = planning.governance;
  const platforms: ReadonlyMap<string, Manifest> = document.platforms ? manifests : present.platforms;
  const stored = present.connections.map(
    (connection) =>
      [connection.label, { platform: connection.platform_id, isDefault: connection.is_default === 1 }] as const,
  );
  const around: ReferenceTargets = {
    platforms,
    connections: documentConnections(document) ?? new Map(stored),
    policies: new Set(document.policies ? Object.keys(document.policies) : present.policies.keys()),
    owners: new Set(planning.ownerIds.keys()),
  };
  const references = await inSlices(referencesOf(document, around), rest);
  planning.problems.push(...references.problems);
  planning.warnings.push(...references.warnings);
}
