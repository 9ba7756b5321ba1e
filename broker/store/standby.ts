/** Reads from a standby (streaming replication) for reports, whose data may be some seconds old. */
import type { Kysely, PostgresPool } from 'kysely';
import { withTimeout } from '../runtime/waits.ts';
import { findGeneration } from './generation.ts';
import type { Schema } from './schema.ts';

/** Maximum lag of a standby in use, measured by heartbeats, which are written every 5 s. */
const MAX_LAG_MS = 10_000;
/** The result of a check of the standby is reused for this long. */
const CHECK_VALID_MS = 1_000;
/** Timeout of a check: a standby that takes longer to report its position is not used. */
const CHECK_TIMEOUT_MS = 1_000;

/** Notified of whether the standby can be read. */
export type StandbyWatch = { failed(error: Error): void; worked(): void };

export type Side = { pool: PostgresPool; db: Kysely<Schema> };

/**
 * Returns a function that gives each new report a pool that reads the standby, or undefined when the standby lags, is unavailable, or belongs to
 * another store.
 *
 * @param watch notified of the result of each check of the standby, and of errors during a report
 */
export function standbyReads(
  primary: Side,
  standby: Side,
  watch: StandbyWatch,
): () => Promise<PostgresPool | undefined> {
  let checkedAt = Number.NEGATIVE_INFINITY;
  let checking: Promise<void> | undefined;
  let isCurrent = false;

  const settle = (problem: Error | undefined): void => {
    checkedAt = performance.now();
    isCurrent = problem === undefined;
    if (problem) watch.failed(problem);
    else watch.worked();
  };
  const check = async (): Promise<void> => {
    const found = findProblem(primary.db, standby.db).catch((error: Error) => error);
    settle(await withTimeout(found, CHECK_TIMEOUT_MS, new Error('The standby does not answer.')));
  };

  return async () => {
    if (performance.now() - checkedAt >= CHECK_VALID_MS) {
      checking ??= check().finally(() => {
        checking = undefined;
      });
      await checking;
    }
    return isCurrent ? oneWay(standby.pool, primary.pool, settle) : undefined;
  };
}

/** Returns why the standby must not be read; undefined: it belongs to this store, and keeps up. */
async function findProblem(primary: Kysely<Schema>, standby: Kysely<Schema>): Promise<Error | undefined> {
  // The standby first: the primary's position is then newer, so that the standby never seems to be ahead.
  const there = await positionOf(standby);
  const here = await positionOf(primary);
  if (there.storeId !== here.storeId) return new Error('The standby is of another store.');
  const lag = here.beat - there.beat;
  return lag > MAX_LAG_MS ? new Error(`The standby is ${Math.round(lag / 1_000)} s behind.`) : undefined;
}

/** Reads the position of a server. `beat`: the newest heartbeat of any broker, in milliseconds by the store's clock. */
async function positionOf(db: Kysely<Schema>): Promise<{ storeId: string | undefined; beat: number }> {
  const newest = await db
    .selectFrom('instances')
    .select((eb) => eb.fn.max('seen_at').as('beat'))
    .executeTakeFirst();
  return { storeId: (await findGeneration(db))?.storeId, beat: Number(newest?.beat ?? 0) };
}

/**
 * Creates a pool for one report, which reads outside of transactions. At the first error of the standby (it is unavailable, or cancels a
 * statement that delays its recovery) the report switches to the primary and stays there, so that it never reads older data than before.
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
