/** Looks up what is shown beside audit rows: names of agents and owners, and the state of held calls. */
import type { Broker } from '../broker.ts';
import { AGENT_ID_PATTERN } from '../crypto/ids.ts';
import { findAgentNames } from '../store/agent-names.ts';
import type { AuditRow } from '../store/audit.ts';
import { type CallHistory, findCallHistories } from '../store/call-histories.ts';
import { listFormerOwners } from '../store/former-owners.ts';
import { listOwners } from '../store/organisations.ts';
import { listPipelines } from '../store/pipelines.ts';
import { findStandingApprovals, type ListedStanding } from '../store/standing-approvals.ts';
import { shownFlags } from './audit-flags.ts';

type HasStore = Pick<Broker, 'store'>;

/** Returns the history of the held calls that rows of an organisation belong to, by approval id. */
export async function historiesOf(
  { store }: HasStore,
  organisationId: string,
  rows: readonly Pick<AuditRow, 'approval_id'>[],
): Promise<ReadonlyMap<string, CallHistory>> {
  const ids = new Set(rows.flatMap(({ approval_id }) => approval_id ?? []));
  return await findCallHistories(store.db, organisationId, [...ids]);
}

/** Returns the standing approvals that let calls pass, by the id of the call's row, where they still exist. */
export async function standingOf(
  { store }: HasStore,
  organisationId: string,
  rows: readonly AuditRow[],
): Promise<ReadonlyMap<string, ListedStanding>> {
  const ids = new Map(
    rows.flatMap((row) => {
      const standing = row.kind === 'action' ? shownFlags(row).standing_approval : undefined;
      return standing ? [[row.id, standing.id] as const] : [];
    }),
  );
  const found = await findStandingApprovals(store.db, organisationId, [...new Set(ids.values())]);
  const byId = new Map(found.map((one) => [one.id, one]));
  return new Map(
    [...ids].flatMap(([rowId, id]) => {
      const one = byId.get(id);
      return one ? [[rowId, one] as const] : [];
    }),
  );
}

/** Returns display names of possible authors of changes by uuid: addresses of the organisation's owners, also removed ones, and names of its pipelines. */
export async function changerNames({ store }: HasStore, organisationId: string): Promise<ReadonlyMap<string, string>> {
  const [former, owners, pipelines] = await Promise.all([
    listFormerOwners(store.db, organisationId),
    listOwners(store.db, organisationId),
    listPipelines(store.db, organisationId),
  ]);
  return new Map([
    ...[...former, ...owners].map(({ id, email }) => [id, email] as const),
    ...pipelines.map(({ id, name }) => [id, `the pipeline ${name}`] as const),
  ]);
}

/** Returns the names of the agents of these rows by their `agt_` id. `ofRow`: the agents of a row; by default the one that it is about. */
export async function agentNames<Row extends Pick<AuditRow, 'agent_public_id'>>(
  { store }: HasStore,
  organisationId: string,
  rows: readonly Row[],
  ofRow: (row: Row) => readonly string[] = ({ agent_public_id }) => (agent_public_id === null ? [] : [agent_public_id]),
): Promise<ReadonlyMap<string, string>> {
  return await findAgentNames(store.db, organisationId, [...new Set(rows.flatMap(ofRow))]);
}

/** Returns the ids of the agent that a row is about, and of the parent that issued a child. */
export function agentsIn(row: Pick<AuditRow, 'id' | 'agent_public_id' | 'flags'>): string[] {
  const by = shownFlags(row).change?.by;
  return [row.agent_public_id, by].filter((id): id is string => typeof id === 'string' && AGENT_ID_PATTERN.test(id));
}
