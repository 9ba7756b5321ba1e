/** What a plan is made of: changes for people to read, and the steps that make them. */

import type { FormerConnection } from '../admin/end-tokens.ts';
import type { Governance } from '../config-file/governance.ts';
import type { Finding, Path, Problem } from '../config-file/problems.ts';
import type { Resolved } from '../config-file/secrets.ts';
import { SealError } from '../crypto/seal.ts';
import { Secret } from '../crypto/secret.ts';
import type { Instant } from '../policy/facts.ts';
import type { EndedRequest } from '../store/revoke-agent.ts';
import type { Db } from '../store/store.ts';
import type { AgentTable, WorkloadTable } from '../store/tables/agents.ts';
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

/** What rules over many comes first: among thousands of agents a changed policy must not be what is left out. */
export const rankOf = ({ kind }: Change): number =>
  kind === 'guardrails' || kind === 'policy' ? -1 : CHANGE_KINDS.indexOf(kind);

export type Plan = { changes: Change[]; warnings: Problem[] };

/** A token with which a new agent brings its key (`abt_…`); it is shown once. */
export type BootstrapToken = AgentName & { token: Secret; expiresAt: Instant };

/** An agent, by what people call it and by its id (`agt_…`). */
export type AgentName = { agent: string; agentId: string };

/** What the steps made. */
export type Made = {
  /** The store cannot tell them again. */
  tokens: BootstrapToken[];
  /** Agents that got a workload: the audience of its tokens names them. */
  trusting: AgentName[];
  /** What agents that were revoked had waited for: to be announced. */
  ended: EndedRequest[];
  /** Connections that were removed, or have another credential now: to be ended at their authorization servers. */
  former: FormerConnection[];
};

/**
 * New rows, which are stored together: one by one thousands of them keep the store's one writer for a second. Policies come
 * before all steps, the others after those of agents and before what is no longer used goes.
 */
export type NewRowsOf = {
  policies: PolicyTable[];
  policy_versions: PolicyVersionTable[];
  agents: AgentTable[];
  /** Those of the agents that wait for a key, for which a bootstrap token is made. */
  keyless: AgentTable[];
  workloads: WorkloadTable[];
  /** Those of the agents that have one. */
  trusting: AgentName[];
  grants: GrantTable[];
};

/** What goes or changes alike, which is written together, after the steps of agents: a file may change thousands. */
export type Together = {
  revoked: AgentTable[];
  /** Ids. */
  removedGrants: string[];
  /** With their new terms. */
  changedGrants: GrantTable[];
  /** By what they get. */
  reassigned: Map<string, { change: { owner_id: string; policy_id: string }; ids: string[] }>;
};

/** Without `make`: it is among what is written together. */
export type Step = { change: Change; make?: (db: Db, made: Made) => Promise<void> };

/** An agent as it will be. `live`: it is, or may again be, at work. */
export type FutureAgent = {
  id: string;
  name: string;
  ownerId: string;
  policyId: string | null;
  live: boolean;
};

/** A grant as it will be. */
export type FutureGrant = { agent: string; platformId: string; connectionId: string | null; live: boolean };

/** Handed from section to section; each adds its steps and what the later ones need. */
export type Planning = {
  readonly governance: Governance;
  readonly present: Present;
  readonly resolved: Resolved;
  /** Whether the plan may tell if a secret that came with the file is the stored one. Without it secrets need no values. */
  readonly comparesSecrets: boolean;
  /** Whether a secret stays whose value did not come with the file, when the stored one came from the same reference. */
  readonly keepsSecrets: boolean;
  /** References to values that did not come and are not stored either; undefined: such a one is a problem. */
  readonly missing: Set<string> | undefined;
  readonly vault: Pick<Vault, 'seal' | 'open'>;
  readonly organisationId: string;
  readonly now: Instant;
  /** Whose the one-time tokens are that are made: of who applies, or of the first admin where the file leaves that owner out. */
  madeBy: string | null;
  /** Whether the organisation may limit grants to repositories that were not limited before. */
  readonly mayLimitRepos: boolean;
  /** Whether the broker is starting: what an owner did to an agent since is no reason to stop then (`addConflict`). */
  readonly atStart: boolean;
  readonly steps: Step[];
  readonly newRows: NewRowsOf;
  readonly together: Together;
  /** How many of the steps come before the new agents and grants. */
  stepsOfAgents: number;
  readonly problems: Finding[];
  readonly warnings: Finding[];
  /** Agents that come under the file with this apply: nothing that is governed changes, so it is no change. */
  readonly adopted: string[];
  readonly ownerIds: Map<string, string>;
  firstAdmin: { id: string; email: string } | undefined;
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

/** A change that is written together with its like. */
export function addTogether(planning: Planning, change: Change, add: (together: Together) => void): void {
  add(planning.together);
  planning.steps.push({ change });
}

/** A change that is nothing but new rows. */
export function addNew<Table extends keyof NewRowsOf>(
  planning: Planning,
  change: Change,
  table: Table,
  row: NewRowsOf[Table][number],
): void {
  (planning.newRows[table] as (typeof row)[]).push(row);
  planning.steps.push({ change });
}

export function addProblem(planning: Planning, path: Path, message: string, at?: 'key'): void {
  planning.problems.push({ path, message, ...(at && { at }) });
}

/**
 * Notes that the file and what owners did to an agent since do not go together: a problem, with what
 * `refused` advises, or, as the broker starts, a warning, with what was `left` as it is and what to do.
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
 * What to make of a secret whose value did not come with the file: it stays, where the stored one came from the same reference and the
 * plan keeps those; otherwise it is missing.
 *
 * @param references the names of its values, as people know them
 */
export function leaveOut(planning: Planning, path: Path, references: readonly string[], isStored: boolean): void {
  if (planning.keepsSecrets && isStored) return;
  if (planning.missing) for (const one of references) planning.missing.add(one);
  else addProblem(planning, path, `the value of ${references.join(', ')} was not given with the file.`);
}

/** Whether a sealed value is this secret; `unreadable`: it cannot be opened. */
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
