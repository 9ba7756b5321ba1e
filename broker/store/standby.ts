/** Reads of a standby (streaming replication) for reports, which may be some seconds old. */
import type { Kysely, PostgresPool } from 'kysely';
import { withTimeout } from '../runtime/waits.ts';
import { findGeneration } from './generation.ts';
import type { Schema } from './schema.ts';

/** How far a standby may be behind and still be asked. Found out by heartbeats, of which one comes every 5 s. */
const MOST_LAG_MS = 10_000;
/** What a look at the standby found is believed for so long. */
const BELIEVED_MS = 1_000;
/** A standby that takes longer to say how far it is, is not asked. */
const LOOK_MS = 1_000;

/** What is told whether the standby can be read. */
export type StandbyWatch = { failed(error: Error): void; worked(): void };

export type Side = { pool: PostgresPool; db: Kysely<Schema> };

/**
 * For each report that begins, a pool that reads the standby, or undefined when that does not keep up, is away, or is of another store.
 *
 * @param watch told what each look at the standby found, and of an error that a report met
 */
export function standbyReads(
  primary: Side,
  standby: Side,
  watch: StandbyWatch,
): () => Promise<PostgresPool | undefined> {
  let lookedAt = Number.NEGATIVE_INFINITY;
  let looking: Promise<void> | undefined;
  let isCurrent = false;

  const settle = (problem: Error | undefined): void => {
    lookedAt = performance.now();
    isCurrent = problem === undefined;
    if (problem) watch.failed(problem);
    else watch.worked();
  };
  const look = async (): Promise<void> => {
    const found = findProblem(primary.db, standby.db).catch((error: Error) => error);
    settle(await withTimeout(found, LOOK_MS, new Error('The standby does not answer.')));
  };

  return async () => {
    if (performance.now() - lookedAt >= BELIEVED_MS) {
      looking ??= look().finally(() => {
        looking = undefined;
      });
      await looking;
    }
    return isCurrent ? oneWay(standby.pool, primary.pool, settle) : undefined;
  };
}

/** Why a standby must not be read; undefined: it is of this store, and keeps up. */
async function findProblem(primary: Kysely<Schema>, standby: Kysely<Schema>): Promise<Error | undefined> {
  // In this order: what the primary says is newer, so that a standby never seems to be ahead.
  const there = await positionOf(standby);
  const here = await positionOf(primary);
  if (there.storeId !== here.storeId) return new Error('The standby is of another store.');
  const lag = here.beat - there.beat;
  return lag > MOST_LAG_MS ? new Error(`The standby is ${Math.round(lag / 1_000)} s behind.`) : undefined;
}

/** `beat`: the newest heartbeat of any broker, in milliseconds by the store's clock. */
async function positionOf(db: Kysely<Schema>): Promise<{ storeId: string | undefined; beat: number }> {
  const newest = await db
    .selectFrom('instances')
    .select((eb) => eb.fn.max('seen_at').as('beat'))
    .executeTakeFirst();
  return { storeId: (await findGeneration(db))?.storeId, beat: Number(newest?.beat ?? 0) };
}

/**
 * A pool for one report, which reads outside of transactions. At the first error of the standby (it is away, or ends a statement that
 * holds up its recovery) the primary is asked, and from then on alone: what a report reads never goes back in time.
 */
function oneWay(standby: PostgresPool, primary: PostgresPool, onLeft: (error: Error) => void): PostgresPool {
  let isLeft = false;
  const leave = (error: unknown): undefined => {
    if (!isLeft) onLeft(error as Error);
    isLeft = true;
  };
  const askPrimary = async (text: string, values: readonly unknown[]) => {
    const client = await primary.connect();
    try {
      return await client.query(text, values);
    } finally {
      client.release();
    }
  };
  return {
    options: standby.options,
    connect: async () => {
      const client = isLeft ? undefined : await standby.connect().catch(leave);
      if (!client) return await primary.connect();
      const query = async (text: string, values: readonly unknown[]) => {
        const answer = isLeft ? undefined : await client.query(text, values).catch(leave);
        return answer ?? (await askPrimary(text, values));
      };
      return { query: query as typeof client.query, release: (destroy) => client.release(destroy) };
    },
    end: async () => {},
  };
}
