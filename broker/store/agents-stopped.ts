/** The state that stops all agents of an organisation. */
import { AgentsStopped } from '../policy/agents-stopped.ts';
import type { Db } from './store.ts';
import { readStored } from './stored-json.ts';

/** Parses the column; undefined when the agents are not stopped. */
export const readAgentsStopped = (text: string | null): AgentsStopped | undefined =>
  text === null ? undefined : readStored(AgentsStopped, text, 'stop of all agents');

/** Returns the stop of an organisation's agents; undefined when they are not stopped. */
export async function findAgentsStopped(db: Db, organisationId: string): Promise<AgentsStopped | undefined> {
  const found = await db
    .selectFrom('organisations')
    .select('agents_stopped')
    .where('id', '=', organisationId)
    .executeTakeFirst();
  return readAgentsStopped(found?.agents_stopped ?? null);
}

/** Sets or clears the stop in one guarded statement. False: it already had that state. */
export async function putAgentsStopped(
  db: Db,
  organisationId: string,
  stopped: AgentsStopped | undefined,
): Promise<boolean> {
  const changed = await db
    .updateTable('organisations')
    .set({ agents_stopped: stopped === undefined ? null : JSON.stringify(stopped) })
    .where('id', '=', organisationId)
    .where('agents_stopped', stopped === undefined ? 'is not' : 'is', null)
    .returning('id')
    .executeTakeFirst();
  return changed !== undefined;
}

/** How many agents of an organisation are active by their own status. */
export async function countActiveAgents(db: Db, organisationId: string): Promise<number> {
  const { count } = await db
    .selectFrom('agents')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('organisation_id', '=', organisationId)
    .where('status', '=', 'active')
    .executeTakeFirstOrThrow();
  return Number(count);
}
