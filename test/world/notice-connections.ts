/** The connections on which brokers receive the notices of PostgreSQL. */
import { setTimeout } from 'node:timers/promises';
import { sql } from 'kysely';
import type { World } from './world.ts';

/** Ends those of all brokers on this world's database. */
export const endNoticeConnections = ({ db }: Pick<World, 'db'>) =>
  sql`select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = 'agent-broker notices' and datname = current_database()`.execute(db);

/** Ends them again and again, until the function that it returns is called. */
export function keepNoticesDown(world: Pick<World, 'db'>): () => Promise<void> {
  let down = true;
  const ending = (async () => {
    while (down) {
      await endNoticeConnections(world);
      await setTimeout(10);
    }
  })();
  return async () => {
    down = false;
    await ending;
  };
}
