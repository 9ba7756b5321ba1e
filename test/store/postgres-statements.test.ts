import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openPreparedStatements, type PreparedStatements } from '../../broker/store/postgres/statements.ts';
import { newDatabase, postgresNote, STORES } from '../world/stores.ts';

const PID = { name: 'pid', text: 'select pg_backend_pid()', values: [] };
const SLEEP = { name: 'sleep', text: 'select pg_sleep(30)', values: [] };

describe.runIf(STORES.includes('postgres'))(`prepared statements on PostgreSQL${postgresNote}`, () => {
  let url: string;
  let statements: PreparedStatements;
  beforeAll(async () => {
    url = await newDatabase();
    statements = openPreparedStatements(url, { max: 1, timeoutMs: 300, onError: () => {} });
  });
  afterAll(async () => await statements.close());

  const pid = async () => (await statements.run<[number]>(PID))[0]![0];

  /** Terminates a backend from another connection, once it executes the statement. */
  async function terminate(victim: number): Promise<void> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      const busy = "select 1 from pg_stat_activity where pid = $1 and state = 'active'";
      await expect.poll(async () => (await client.query(busy, [victim])).rowCount).toBe(1);
      await client.query('select pg_terminate_backend($1)', [victim]);
    } finally {
      await client.end();
    }
  }

  test('are prepared once, and return rows as lists', async () => {
    const add = { name: 'add', text: 'select $1::int + $2::int, $1::text', values: [1, 2] };
    expect(await statements.run(add)).toEqual([[3, '1']]);
    expect(await statements.run({ ...add, values: [4, 5] })).toEqual([[9, '4']]);
    const prepared = await statements.run({
      name: 'list',
      text: 'select name from pg_prepared_statements',
      values: [],
    });
    expect(prepared.flat()).toContain('add');
  });

  test('a statement without an answer times out, and the next one gets a new connection', async () => {
    const before = await pid();
    const startedAt = performance.now();
    await expect(statements.run(SLEEP)).rejects.toThrow('PostgreSQL did not answer the statement in time');
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    expect(await pid()).not.toBe(before);
  });

  test('statements that wait for a connection meanwhile are executed', async () => {
    const slow = expect(statements.run(SLEEP)).rejects.toThrow('PostgreSQL did not answer the statement in time');
    const next = statements.run({ name: 'one', text: 'select 1', values: [] });
    await slow;
    expect(await next).toEqual([[1]]);
  });

  test('a statement whose connection is lost fails, and the next one succeeds', async () => {
    const patient = openPreparedStatements(url, { max: 1, onError: () => {} });
    const [[victim]] = (await patient.run<[number]>(PID)) as [[number]];
    const broken = expect(patient.run(SLEEP)).rejects.toThrow(/terminat/);
    await terminate(victim);
    await broken;
    expect(await patient.run(PID)).not.toEqual([[victim]]);
    await patient.close();
  });

  test('an invalid statement fails with PostgreSQL’s error, and the next one succeeds', async () => {
    await expect(statements.run({ name: 'wrong', text: 'select nothing', values: [] })).rejects.toMatchObject({
      code: '42703',
    });
    expect(await pid()).toBeGreaterThan(0);
  });
});
