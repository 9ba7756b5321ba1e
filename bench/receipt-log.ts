/** `npm run bench -- log`: the cost of the receipt log per row, in CPU microseconds: the trigger of each row, and its place in the tree. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { sql } from 'kysely';
import { uuidv4 } from '../broker/crypto/ids.ts';
import { rootOfEdge } from '../broker/receipt-log/merkle.ts';
import { BATCH_ENTRIES } from '../broker/receipt-log/sequencer.ts';
import { appendRows, readEdge } from '../broker/receipt-log/tree.ts';
import { present } from '../broker/runtime/present.ts';
import type { Appender } from '../broker/store/appender.ts';
import { auditStatement } from '../broker/store/audit.ts';
import { AUDIT_COLUMNS } from '../broker/store/audit-columns.ts';
import { takePending } from '../broker/store/log-pending.ts';
import { migrate } from '../broker/store/migrate.ts';
import { openAppender } from '../broker/store/open-appender.ts';
import { putOrganisation } from '../broker/store/organisations.ts';
import { openPostgres } from '../broker/store/postgres/postgres.ts';
import { moveHead } from '../broker/store/receipt-logs.ts';
import { openSqlite } from '../broker/store/sqlite/sqlite.ts';
import type { Store } from '../broker/store/store.ts';
import { wholeNumber } from './bench-options.ts';
import { median } from './measure.ts';
import { startPostgres } from './postgres.ts';
import { cpuSeconds } from './process.ts';
import { readRow } from './read-row.ts';

export const LOG_USAGE = `Usage: npm run bench -- log [--rounds N] [--rows N]

  --rounds N       rounds on each store: rows without the log, and as many with it, in turns (10)
  --rows N         rows of a run (20000)
`;

export type LogOptions = { rounds: number; rows: number };

/** Parses the command line. Throws an Error with a message for the user. */
export function readLogOptions(args: readonly string[]): LogOptions {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({ args: [...args], options: { rounds: text, rows: text } });
  return {
    rounds: wholeNumber('--rounds', values.rounds, 10, 100),
    rows: wholeNumber('--rows', values.rows, 20_000, 1_000_000),
  };
}

/** The goal: CPU microseconds of the log per call. A read is one row. */
const GOAL_MICROS = 4;
/** The batch size of the recorder under load. */
const BATCH_ROWS = 64;

/** Runs the bench on both stores and prints the results. Returns the exit code. */
export async function benchLog({ rounds, rows }: LogOptions): Promise<number> {
  process.stdout.write(`The goal is at most ${GOAL_MICROS} µs of CPU a row.\n\n`);
  const folder = mkdtempSync(join(tmpdir(), 'agent-broker-bench-log-'));
  try {
    await measureStore(openSqlite(folder), [process.pid], { rounds, rows });
  } finally {
    rmSync(folder, { recursive: true });
  }
  const server = await startPostgres();
  if (!server) {
    process.stdout.write('PostgreSQL is not installed: it was not measured.\n');
    return 0;
  }
  try {
    const url = await server.createDatabase('log');
    const store = openPostgres(url, { connections: 2, onError: () => {} });
    await measureStore(store, [process.pid, server.pid], { rounds, rows });
  } finally {
    await server.stop();
  }
  return 0;
}

async function measureStore(store: Store, pids: readonly number[], { rounds, rows }: LogOptions): Promise<void> {
  await migrate(store);
  const appender = openAppender(store.appendTo);
  const organisationId = uuidv4();
  await putOrganisation(store.db, {
    id: organisationId,
    name: 'bench',
    publish_identity_documents: 0,
    guardrails_version: 0,
    approval_ttl_ms: 60_000,
    created_at: Date.now(),
  });
  const triggers = await readTriggers(store);
  const micros = async (work: () => Promise<void>): Promise<number> => {
    const before = cpuSeconds(pids);
    await work();
    return ((cpuSeconds(pids) - before) * 1_000_000) / rows;
  };
  const found = { without: [] as number[], trigger: [] as number[], places: [] as number[] };
  // The first round is not counted: it fills caches.
  for (let round = 0; round <= rounds; round++) {
    const batches = makeRows(organisationId, rows);
    const logged = makeRows(organisationId, rows);
    await triggers.drop();
    const without = await micros(() => append(store, appender, batches));
    await triggers.make();
    const trigger = await micros(() => append(store, appender, logged));
    const places = await micros(() => givePlaces(store, organisationId));
    if (round === 0) continue;
    found.without.push(without);
    found.trigger.push(trigger);
    found.places.push(places);
  }
  const more = found.trigger.map((one, at) => one - present(found.without[at], 'round'));
  const line = (name: string, each: readonly number[]) =>
    `  ${name.padEnd(36)} ${median(each).toFixed(1)} µs (${each.map((one) => one.toFixed(1)).join(' ')})\n`;
  process.stdout.write(
    `${store.dialect}, CPU a row, ${rounds} rounds of ${rows} rows, ${BATCH_ROWS} at a time:\n` +
      line('writing a row without the log', found.without) +
      line('the trigger beside it', more) +
      line('its place in the log', found.places) +
      line(
        'the log together',
        more.map((one, at) => one + present(found.places[at], 'round')),
      ),
  );
  await appender.close();
  await store.close();
}

/** Returns rows of reads in batches, with a hash and a receipt of the same length as a broker's. */
function makeRows(organisationId: string, count: number): (readonly unknown[])[][] {
  const rows = Array.from({ length: count }, () => {
    const row = {
      ...readRow(organisationId),
      row_hash: randomBytes(32).toString('hex'),
      receipt_kid: randomBytes(32).toString('base64url'),
      receipt: randomBytes(64).toString('base64url'),
      receipt_format: 1,
      receipt_issuer: 'did:web:broker.example',
    };
    return AUDIT_COLUMNS.map((column) => row[column]);
  });
  return Array.from({ length: Math.ceil(count / BATCH_ROWS) }, (_, at) =>
    rows.slice(at * BATCH_ROWS, (at + 1) * BATCH_ROWS),
  );
}

async function append(store: Store, appender: Appender, batches: (readonly unknown[])[][]): Promise<void> {
  // SQLite executes a statement for one row repeatedly; PostgreSQL uses one COPY for any number of new rows.
  const statement = auditStatement(store.db, store.dialect === 'sqlite' ? 1 : BATCH_ROWS);
  for (const batch of batches) await appender.append(statement, batch, true);
}

/** Does the sequencer's work per row, without its lease and its signatures, which happen once in five seconds. */
async function givePlaces(store: Store, organisationId: string): Promise<void> {
  const origin = `broker.example/orgs/${organisationId}`;
  const log = await store.db.selectFrom('receipt_logs').select(['size', 'root']).executeTakeFirst();
  const edge = await readEdge(store.db, organisationId, log?.size ?? 0, log?.root ?? '');
  for (let more = true; more; )
    more = await store.db.transaction().execute(async (tx) => {
      const { pending, isFull } = await takePending(tx, store, BATCH_ENTRIES[store.dialect]);
      if (pending.length === 0) return false;
      const from = edge.size;
      await appendRows(
        tx,
        organisationId,
        edge,
        pending.toSorted((a, b) => (a.ids < b.ids ? -1 : 1)),
        Date.now(),
      );
      const root = Buffer.from(rootOfEdge(edge)).toString('base64');
      const head = { organisation_id: organisationId, origin, size: edge.size, root, from };
      if (!(await moveHead(tx, head))) throw new Error('The log is not where it was.');
      return isFull;
    });
}

/** Reads the triggers that queue a row for the log. `drop` removes them, and `make` creates them again. */
async function readTriggers({ db, dialect }: Store): Promise<{ drop(): Promise<void>; make(): Promise<void> }> {
  const names = ['log_final_insert', 'log_final_update'];
  if (dialect === 'postgres') {
    const set = (state: 'disable' | 'enable') => async () => {
      for (const name of names) await sql.raw(`alter table audit_rows ${state} trigger ${name}`).execute(db);
    };
    return { drop: set('disable'), make: set('enable') };
  }
  const { rows } = await sql<{ sql: string }>`select sql from sqlite_master
    where type = 'trigger' and name in ('log_final_insert', 'log_final_update')`.execute(db);
  return {
    drop: async () => {
      for (const name of names) await sql.raw(`drop trigger ${name}`).execute(db);
    },
    make: async () => {
      for (const one of rows) await sql.raw(one.sql).execute(db);
    },
  };
}
