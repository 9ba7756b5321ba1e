/** The state of a plan: changes for people to read, and the steps that make them. */

import type { FormerConnection } from '../admin/agents/end-tokens.ts';
import { ChangeRefused } from '../admin/refused.ts';
import type { Governance } from '../config-file/governance.ts';
import type { Finding, Path, Problem } from '../config-file/problems.ts';
import type { Resolved } from '../config-file/secrets.ts';
import { SealError } from '../crypto/seal.ts';
import { Secret } from '../crypto/secret.ts';
import type { Instant } from '../policy/facts.ts';
import type { EndedRequest } from '../store/revoke-agent.ts';
import type { Db } from '../store/store.ts';
import type { AgentTable, WorkloadTable } from '../store/tables/agents.ts';
import type { NoticeChannelTable } from '../store/tables/notices.ts';
import type { GrantTable, PolicyTable, PolicyVersionTable } from '../store/tables/rules.ts';
import type { Vault } from '../vault.ts';
import type { Present } from './present.ts';

export const CHANGE_KINDS = [
  'organisation',
  'owner',
  'platform',
  'connection',
  'channel',
  'audit_sink',
  'policy',
  'guardrails',
  'agent',
  'key',
  'workload',
  'grant',
] as const;
export type ChangeKind = (typeof CHANGE_KINDS)[number];

/** One difference between the file and the store. `details` are lines such as `role: viewer → admin`, never a secret. */
export type Change = { action: 'create' | 'update' | 'delete'; kind: ChangeKind; name: string; details: string[] };

/** Sorts changes that affect many agents first: a changed policy must not be cut off after thousands of agents. */
export const rankOf = ({ kind }: Change): number =>
  kind === 'guardrails' || kind === 'policy' ? -1 : CHANGE_KINDS.indexOf(kind);

export type Plan = { changes: Change[]; warnings: Problem[] };

/** A token with which a new agent binds its key (`abt_…`); it is shown once. */
export type BootstrapToken = AgentName & { token: Secret; expiresAt: Instant };

/** An agent, by its name and its id (`agt_…`). */
export type AgentName = { agent: string; agentId: string };

/** Results of the steps. */
export type Made = {
  /** Tokens that cannot be read from the store again. */
  tokens: BootstrapToken[];
  /** Agents that got a workload, for display: the audience of its tokens contains the agent's id. */
  trusting: AgentName[];
  /** Held calls and access requests of revoked agents, for notifications. */
  ended: EndedRequest[];
  /** Connections that were removed or got another credential: their tokens are revoked at their authorization servers. */
  former: FormerConnection[];
  /** Channels that were removed, as they were: their registrations for clicks are removed too. */
  removedChannels: NoticeChannelTable[];
};

/**
 * New rows, which are inserted in batches: single inserts of thousands would block the store's one writer for a second. Policies are
 * inserted before all steps, the others after the steps of agents and before removals.
 */
export type NewRowsOf = {
  policies: PolicyTable[];
  policy_versions: PolicyVersionTable[];
  agents: AgentTable[];
  /** Those of the agents that wait for a key, for which a bootstrap token is created. */
  keyless: AgentTable[];
  workloads: WorkloadTable[];
  /** Those of the agents that have a workload. */
  trusting: AgentName[];
  grants: GrantTable[];
};

/** Removals and equal changes, which are written in batches, after the steps of agents: a file may change thousands. */
export type Together = {
  revoked: AgentTable[];
  /** Ids of grants. */
  removedGrants: string[];
  /** Grants with their new terms. */
  changedGrants: GrantTable[];
  /** Agents by their new owner and policy. */
  reassigned: Map<string, { change: { owner_id: string; policy_id: string }; ids: string[] }>;
};

/** Without `make`: the change is part of a batch. */
export type Step = { change: Change; make?: (db: Db, made: Made) => Promise<void> };

/**
 * Thrown by a step: an agent was suspended, resumed or revoked after the plan. What stops an agent waits for no other change, so the lock of the organisation
 * does not prevent this.
 */
export class ChangedMeanwhile extends ChangeRefused {
  constructor(agent: string) {
    super('conflict', `${agent} changed its status meanwhile. Nothing was changed; plan and apply again.`);
  }
}

/** An agent as it will be. `live`: not permanently revoked. */
export type FutureAgent = {
  id: string;
  name: string;
  ownerId: string;
  policyId: string | null;
  live: boolean;
};

/** A grant as it will be. */
export type FutureGrant = { agent: string; platformId: string; connectionId: string | null; live: boolean };

/** Passed from section to section; each adds its steps and what later sections need. */
export type Planning = {
  readonly governance: Governance;
  readonly present: Present;
  readonly resolved: Resolved;
  /** Whether the plan may show if a secret that came with the file equals the stored one. Without it secrets need no values. */
  readonly comparesSecrets: boolean;
  /** Whether to keep a secret whose value did not come with the file, when the stored one came from the same reference. */
  readonly keepsSecrets: boolean;
  /** References to values that neither came with the file nor are stored; undefined: such a reference is a problem. */
  readonly missing: Set<string> | undefined;
  readonly vault: Pick<Vault, 'seal' | 'open'>;
  readonly organisationId: string;
  readonly now: Instant;
  /** The owner to whom new one-time tokens are attributed: who applies the file, or the first admin where the file removes that owner. */
  madeBy: string | null;
  /** Whether the organisation may newly limit grants to repositories. */
  readonly mayLimitRepos: boolean;
  /** Whether audit sinks of the kind file can be added: the operator set AUDIT_FOLDER. */
  readonly hasAuditFolder: boolean;
  /** Whether the broker is starting: conflicts with later changes by owners to an agent then do not stop the start (`addConflict`). */
  readonly atStart: boolean;
  readonly steps: Step[];
  readonly newRows: NewRowsOf;
  readonly together: Together;
  /** The number of steps that come before the new agents and grants. */
  stepsOfAgents: number;
  readonly problems: Finding[];
  readonly warnings: Finding[];
  /** Agents that the file newly manages: their governance does not change, so this is not listed as a change. */
  readonly adopted: string[];
  readonly ownerIds: Map<string, string>;
  firstAdmin: { id: string; email: string } | undefined;
  /** The number of owners with a role that may decide. */
  deciders: number;
  readonly policyIds: Map<string, string>;
  readonly connectionIds: Map<string, string>;
  readonly futureAgents: FutureAgent[];
  /** Names of the agents to which this file gives keys, by fingerprint. */
  readonly givenKeys: Map<string, string>;
  readonly futureGrants: FutureGrant[];
};

export function addStep(planning: Planning, change: Change, make: NonNullable<Step['make']>): void {
  planning.steps.push({ change, make });
}

/** Adds a change that is written in a batch. */
export function addTogether(planning: Planning, change: Change, add: (together: Together) => void): void {
  add(planning.together);
  planning.steps.push({ change });
}

/** Adds a change that only inserts a row. */
export function addNew<Table extends keyof NewRowsOf>(
  planning: Planning,
  change: Change,
  table: Table,
  row: NewRowsOf[Table][number],
): void {
  (planning.newRows[table] as (typeof row)[]).push(row);
  planning.steps.push({ change });
}

export function addProblem(planning: Planning, path: Path, message: string): void {
  planning.problems.push({ path, message });
}

/**
 * Adds a conflict between the file and what owners did to an agent since: a problem, with the advice `refused`, or, as the broker
 * starts, a warning, with what was `left` unchanged and what to do.
 */
export function addConflict(
  planning: Planning,
  path: Path,
  { why, refused, left }: { why: string; refused: string; left: string },
  at?: 'key',
): void {
  const findings = planning.atStart ? planning.warnings : planning.problems;
  findings.push({ path, message: `${why} ${planning.atStart ? left : refused}`, ...(at && { at }) });
}

/**
 * Handles a secret whose value did not come with the file: it stays, where the stored one came from the same reference and the
 * plan keeps those; otherwise it is missing.
 *
 * @param references the names of its values, as people know them
 */
export function leaveOut(planning: Planning, path: Path, references: readonly string[], isStored: boolean): void {
  if (planning.keepsSecrets && isStored) return;
  if (planning.missing) for (const one of references) planning.missing.add(one);
  else addProblem(planning, path, `the value of ${references.join(', ')} was not given with the file.`);
}

/** Whether a sealed value equals this secret; `unreadable`: it cannot be opened. */
export function holdsSecret(
  vault: Planning['vault'],
  place: Parameters<Vault['open']>[0],
  sealed: Uint8Array,
  secret: Secret,
): boolean | 'unreadable' {
  try {
    return new Secret(vault.open(place, sealed)).equals(secret);
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    return 'unreadable';
  }
}
