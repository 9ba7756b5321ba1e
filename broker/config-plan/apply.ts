/** Applies a governance file to the store atomically. */

import { newBootstrapToken } from '../auth/bootstrap-token.ts';
import type { Governance } from '../config-file/governance.ts';
import type { Problem } from '../config-file/problems.ts';
import type { Resolved } from '../config-file/secrets.ts';
import type { Instant } from '../policy/facts.ts';
import { pacer } from '../runtime/pace.ts';
import { adoptAgents, changeInBulk, findGovernanceVersion, lockOrganisation } from '../store/governance.ts';
import { type NewRows, prepareNewRows } from '../store/new-rows.ts';
import { findOrganisation } from '../store/organisations.ts';
import type { Db, Store } from '../store/store.ts';
import type { OrganisationTable } from '../store/tables/organisations.ts';
import type { OneTimeTokenTable } from '../store/tables/registrations.ts';
import { RolledBack, rollback } from '../store/transaction.ts';
import type { Vault } from '../vault.ts';
import { keptFile } from './applies.ts';
import { exportPresent } from './export.ts';
import { finish, planOn, shownVersion, UnknownOrganisation } from './plan.ts';
import {
  type AgentName,
  type BootstrapToken,
  ChangedMeanwhile,
  type Made,
  type Plan,
  type Planning,
} from './planning.ts';
import { writeTogether } from './write-together.ts';

export type ApplyResult =
  | {
      ok: true;
      plan: Plan;
      bootstrapTokens: BootstrapToken[];
      /** Agents that got a workload. */
      trusting: AgentName[];
      /** Held calls and access requests that ended with their agents, for notifications. */
      ended: Made['ended'];
      /** See `Made`. */
      former: Made['former'];
      removedChannels: Made['removedChannels'];
      /** The number of existing agents that the file now manages, which alone is no change of governance. */
      adopted: number;
      /** What was in force before, in stored form (`keptFile`); null: too long, or nothing was changed. */
      fileBefore: Uint8Array | null;
    }
  /** `changed`: governance was changed since the plan that was shown. */
  | { ok: false; problems: Problem[]; changed?: true };

export type ApplyOptions = {
  /**
   * Whether the broker is starting. An agent whose name or key can no longer be used as the file says (it was bound to another key,
   * or deleted) is then a warning, and stays as the store has it, so that it does not prevent all others from working.
   */
  atStart?: boolean;
  /** By default false; see `Planning`. */
  keepsSecrets?: boolean;
  /** By default true; see `Planning`. */
  mayLimitRepos?: boolean;
  /** By default true; see `Planning`. */
  hasAuditFolder?: boolean;
  /** By default null; see `Planning`. */
  madeBy?: string;
  /** The version of the plan that a person agreed to (`planGovernance`); undefined: apply to whatever is in force. */
  plannedFor?: string | undefined;
};

/** What is applied, and to which organisation. */
export type Applying = {
  store: Pick<Store, 'db' | 'dialect'>;
  vault: Vault;
  organisationId: string;
  governance: Governance;
  resolved: Resolved;
  clock: () => Instant;
  options?: ApplyOptions;
};

/**
 * Runs `make` in a transaction, which is rolled back when it throws, or returns a rollback. `plannedAt`: the time that its rows have; undefined: the time
 * within the transaction.
 */
export type Transact = <Reason>(
  make: (db: Db) => Promise<ApplyResult | RolledBack<Reason>>,
  plannedAt?: Instant,
) => Promise<ApplyResult | RolledBack<Reason>>;

/** After so many plans that concurrent changes invalidated, the next plan is made inside the transaction. */
const MAX_PLANS = 3;

/**
 * Applies a file in one transaction. Applying the same file again changes nothing. A refused file changes nothing.
 *
 * The plan is made before the transaction, to keep the transaction short, and is valid when no governance data was changed
 * since. Otherwise it is made again; at last inside the transaction, which blocks other writers but always completes.
 *
 * @returns the changes that were made, and the tokens of new agents without a key, which cannot be shown again
 * @throws UnknownOrganisation; ChangedMeanwhile, when agents changed their status during every attempt; whatever the store throws. Then nothing was changed
 */
export async function applyFile(applying: Applying, transact: Transact): Promise<ApplyResult> {
  for (let plans = 0; plans < MAX_PLANS; plans++) {
    const result = await applyPlanned(applying, transact);
    if (result) return result;
  }
  const done = await transact(async (db) => {
    const organisation = await lockOrganisation(db, applying.organisationId);
    if (isOvertaken(applying, await findGovernanceVersion(db, applying.organisationId))) return rollback(OVERTAKEN);
    const planned = await plan(applying, db, organisation);
    if (!hasChange(planned)) return rollback(planned.result);
    const rows = await prepareRows({ db, dialect: 'postgres' }, planned.planning);
    return await make(db, planned, rows, await fileBefore(db, planned));
  });
  return done instanceof RolledBack ? done.reason : done;
}

const OVERTAKEN: ApplyResult = { ok: false, problems: [], changed: true };

/** Whether the plan that a person agreed to was made for another version than this one. */
const isOvertaken = ({ options }: Applying, version: string | undefined): boolean =>
  options?.plannedFor !== undefined && options.plannedFor !== shownVersion(version);

/** Whether applying the plan makes a difference that has to be recorded. */
const hasChange = (planned: Planned): planned is Applicable =>
  planned.result.ok && planned.result.plan.changes.length + planned.result.adopted > 0;

type Applicable = { planning: Planning; result: ApplyResult & { ok: true } };
type Planned = Applicable | { planning: Planning; result: ApplyResult & { ok: false } };

/** Returns undefined after a concurrent change of governance; then nothing was done. */
async function applyPlanned(applying: Applying, transact: Transact): Promise<ApplyResult | undefined> {
  const { store, organisationId } = applying;
  const { db } = store;
  // Read once for both comparisons: a change between two reads would be applied without having been shown.
  const version = await findGovernanceVersion(db, organisationId);
  if (isOvertaken(applying, version)) return OVERTAKEN;
  const isCurrent = async (at: Db) => (await findGovernanceVersion(at, organisationId)) === version;
  const planned = await plan(applying, db, await findOrganisation(db, organisationId));
  if (!(await isCurrent(db))) return undefined;
  if (!hasChange(planned)) return planned.result;
  const rows = await prepareRows(store, planned.planning);
  const before = await fileBefore(db, planned);
  try {
    const done = await transact(async (tx) => {
      await lockOrganisation(tx, organisationId);
      if (!(await isCurrent(tx))) return rollback('concurrent_update');
      return await make(tx, planned, rows, before);
    }, planned.planning.now);
    return done instanceof RolledBack ? undefined : done;
  } catch (error) {
    if (error instanceof ChangedMeanwhile) return undefined;
    throw error;
  } finally {
    await rows.forget();
  }
}

async function plan(
  { vault, organisationId, governance, resolved, clock, options }: Applying,
  db: Db,
  organisation: OrganisationTable | undefined,
): Promise<Planned> {
  if (!organisation) throw new UnknownOrganisation(organisationId);
  const planning = await planOn(db, vault, organisation, governance, resolved, clock(), options);
  const result = await finish(planning);
  if (!result.ok) return { planning, result };
  return {
    planning,
    result: {
      ...result,
      bootstrapTokens: [],
      trusting: [],
      ended: [],
      former: [],
      removedChannels: [],
      adopted: planning.adopted.length,
      fileBefore: null,
    },
  };
}

type Rows = { policies: NewRows[]; agents: NewRows[]; tokens: BootstrapToken[]; forget(): Promise<void> };

/** Prepares everything about the new rows that can be done before the transaction. */
async function prepareRows(
  store: Pick<Store, 'db' | 'dialect'>,
  { newRows, together, now, madeBy }: Planning,
): Promise<Rows> {
  const rest = pacer();
  const minted: OneTimeTokenTable[] = [];
  const tokens: BootstrapToken[] = [];
  for (const agent of newRows.keyless) {
    const { row, token, expiresAt } = newBootstrapToken(agent, now, { madeBy });
    minted.push(row);
    tokens.push({ agent: agent.name, agentId: agent.agent_id, token, expiresAt });
    await rest();
  }
  const policies = [
    await prepareNewRows(store, 'policies', newRows.policies, rest),
    await prepareNewRows(store, 'policy_versions', newRows.policy_versions, rest),
  ];
  const agents = [
    await prepareNewRows(store, 'agents', newRows.agents, rest),
    await prepareNewRows(store, 'workloads', newRows.workloads, rest),
    await prepareNewRows(store, 'one_time_tokens', minted, rest),
    await prepareNewRows(store, 'grants', newRows.grants, rest),
    await prepareNewRows(store, 'grants', together.changedGrants, rest, { replaces: true }),
  ];
  const forget = async () => {
    for (const rows of [...policies, ...agents]) await rows.forget();
  };
  return { policies, agents, tokens, forget };
}

/** Returns the state before the apply, as a file: the state that the plan was made on, which stays in force until the transaction. */
const fileBefore = async (db: Db, { planning: { present, now } }: Applicable): Promise<Uint8Array | null> =>
  await keptFile(await exportPresent(db, present, now));

async function make(db: Db, planned: Applicable, rows: Rows, fileBefore: Uint8Array | null): Promise<ApplyResult> {
  const { steps, stepsOfAgents, organisationId, adopted, newRows } = planned.planning;
  const made: Made = { tokens: [], trusting: [...newRows.trusting], ended: [], former: [], removedChannels: [] };
  const rest = pacer();
  const makeSteps = async (some: typeof steps) => {
    for (const step of some) {
      await step.make?.(db, made);
      await rest();
    }
  };
  for (const each of rows.policies) await each.make(db);
  await makeSteps(steps.slice(0, stepsOfAgents));
  await changeInBulk(db, organisationId, async () => {
    for (const each of rows.agents) await each.make(db);
    await writeTogether(db, planned.planning, made, rest);
    await adoptAgents(db, organisationId, adopted);
  });
  await makeSteps(steps.slice(stepsOfAgents));
  const { tokens, ...results } = made;
  const bootstrapTokens = [...rows.tokens, ...tokens];
  return { ...planned.result, ...results, bootstrapTokens, fileBefore };
}
