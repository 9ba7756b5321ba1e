/** Whether an agent is public: read from the store each time, for arbitrary agent ids. */
import { type Kysely, sql } from 'kysely';
import { batchLoader } from './batch-loader.ts';
import type { Schema } from './schema.ts';
import { prepare, type Store } from './store.ts';

/** `(agent_id)` → whether the agent exists and its organisation publishes identity documents. */
export type PublishedReader = (agentId: string) => Promise<boolean>;

const MAX_QUESTIONS = 64;

/**
 * The same statement covers unknown agents and unpublished organisations, so that timing does not tell them apart. Concurrent
 * reads are batched (see `factsReaders`).
 */
export function publishedReader(store: Store): PublishedReader {
  const one = prepare('published_agent', (slot) => published(store.db).where('a.agent_id', '=', slot('agent')));
  const many = prepare('published_agents', (slot) =>
    published(store.db).where(sql<boolean>`a.agent_id = any(${slot('agents')}::text[])`),
  );
  const isPublished = async (agent: string): Promise<boolean> => (await store.read(one, { agent })).length > 0;
  const readMany = async (agents: readonly string[]): Promise<boolean[]> => {
    const found = new Set((await store.read(many, { agents })).map(([agentId]) => agentId));
    return agents.map((agent) => found.has(agent));
  };
  return batchLoader(
    (agents) =>
      store.dialect === 'sqlite' || agents.length === 1 ? Promise.all(agents.map(isPublished)) : readMany(agents),
    MAX_QUESTIONS,
  );
}

const published = (db: Kysely<Schema>) =>
  db
    .selectFrom('agents as a')
    .innerJoin('organisations as o', 'o.id', 'a.organisation_id')
    .select('a.agent_id')
    .where('o.publish_identity_documents', '=', 1);
