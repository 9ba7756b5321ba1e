/** What is read beside audit rows, when an owner reads them: names of agents and owners, and what became of held calls. */
import type { Broker } from '../broker.ts';
import { findAgentNames } from '../store/agent-names.ts';
import type { AuditRow } from '../store/audit.ts';
import { type CallHistory, findCallHistories } from '../store/call-histories.ts';
import { listOwners } from '../store/organisations.ts';

type HasStore = Pick<Broker, 'store'>;

/** What became of the held calls that rows of an organisation belong to, by the id of the approval. */
export async function historiesOf(
  { store }: HasStore,
  organisationId: string,
  rows: readonly Pick<AuditRow, 'approval_id'>[],
): Promise<ReadonlyMap<string, CallHistory>> {
  const ids = new Set(rows.flatMap(({ approval_id }) => approval_id ?? []));
  return await findCallHistories(store.db, organisationId, [...ids]);
}

/** Addresses of an organisation's owners by their uuid. */
export async function ownerAddresses(
  { store }: HasStore,
  organisationId: string,
): Promise<ReadonlyMap<string, string>> {
  return new Map((await listOwners(store.db, organisationId)).map(({ id, email }) => [id, email]));
}

/** Names of the agents of these rows by their `agt_` id. */
export async function agentNames(
  { store }: HasStore,
  organisationId: string,
  rows: readonly Pick<AuditRow, 'agent_public_id'>[],
): Promise<ReadonlyMap<string, string>> {
  const ids = new Set(rows.flatMap(({ agent_public_id }) => agent_public_id ?? []));
  return await findAgentNames(store.db, organisationId, [...ids]);
}
