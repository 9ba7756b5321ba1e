/** Reports are read from a standby while it keeps up, otherwise from the primary; with a real standby by streaming replication. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Postgres, startPostgres } from '../../bench/postgres.ts';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { expectStatus, send, type TestAgent } from '../world/agent.ts';
import { auditIdOf } from '../world/evidence.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { STORES } from '../world/stores.ts';
import { CANARY, type Organisation, READ, startWorld, type World } from '../world/world.ts';

const NOT_DURABLE = ['--fsync=off', '--full_page_writes=off'];

async function run(url: string, ...statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

const read = async (url: string, statement: string): Promise<string> => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return Object.values((await client.query(statement)).rows[0])[0] as string;
  } finally {
    await client.end();
  }
};

describe.runIf(STORES.includes('postgres'))('a standby', () => {
  let primary: Postgres;
  let standby: Postgres;
  let url: string;
  let world: World;
  let organisation: Organisation;
  let agent: TestAgent;
  let said: string[];

  const ask = async (path: string) => {
    const authorization = `Bearer ${mintOwnerSession(world.running.broker, organisation.owner).token}`;
    return await send(`${world.running.baseUrl}${path}`, { headers: { authorization } });
  };
  const linesOf = async (path: string) => {
    const { text } = await expectStatus(200, ask(path));
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  };
  const exported = async (): Promise<string[]> => (await linesOf('/owner/audit/export')).map(({ id }) => id);
  const call = async () => auditIdOf(await agent.act(READ));
  const onStandby = (statement: string) => run(standby.urlOf('broker'), statement);
  /** Waits until the standby has replayed everything of the primary. */
  const followed = () =>
    vi.waitUntil(
      async () => {
        const at = await read(url, 'select pg_current_wal_lsn()');
        return read(standby.urlOf('broker'), `select pg_last_wal_replay_lsn() >= '${at}'::pg_lsn`);
      },
      { timeout: 15_000, interval: 100 },
    );
  /** Waits until the standby is checked again: the result of a check is reused for a second. */
  const nextCheck = () => new Promise((resolve) => setTimeout(resolve, 1_100));
  /** Advances the heartbeats by a minute, so that a standby without this change lags. */
  const advanceHeartbeats = () => run(url, 'update instances set seen_at = seen_at + 60000');

  beforeAll(async () => {
    const server = await startPostgres({ settings: NOT_DURABLE });
    if (!server) throw new Error('PostgreSQL (initdb, postgres, pg_basebackup) is not installed here.');
    primary = server;
    afterFile(() => primary.stop());
    url = await primary.createDatabase('broker');
    standby = await primary.addStandby({ late: true });
    afterFile(() => standby.stop());
    world = await startWorld('sqlite', { DATABASE_URL: url, DATABASE_READ_URL: standby.urlOf('broker') });
    said = [];
    for (const level of ['warn', 'info'] as const)
      vi.spyOn(world.running.broker.log, level).mockImplementation((...line: unknown[]) => {
        said.push(`${level}: ${line.at(-1)} ${JSON.stringify((line[0] as { err?: Error }).err?.message ?? '')}`);
      });
    organisation = await world.organisation();
    await organisation.platform();
    agent = await organisation.agent();
    await followed();
    await nextCheck();
  }, 180_000);

  afterEach(() => onStandby('select case when pg_is_in_recovery() then pg_wal_replay_resume() end'));

  const aboutIt = () => said.splice(0).filter((line) => line.includes('standby'));

  test('is used for exports and older activity, and the primary for everything else', async () => {
    const first = await call();
    await followed();
    await onStandby('select pg_wal_replay_pause()');
    const second = await call();
    const ids = await exported();
    expect(ids).toContain(first);
    expect(ids, 'came after the standby was paused').not.toContain(second);
    const { body } = await ask('/owner/audit?limit=1');
    expect(body.rows[0].id).toBe(second);
    expect((await ask(`/owner/audit?text=${second}`)).body.rows.length).toBe(1);
    expect((await agent.get(`/v1/audit/${second}/receipt`)).status).toBe(200);
    await run(url, `delete from audit_rows where id = '${first}'`);
    const later = `/owner/audit?limit=200&before=${'f'.repeat(8)}-ffff-7fff-bfff-ffffffffffff`;
    expect(
      (await ask(later)).body.rows.map(({ id }: { id: string }) => id),
      'as new as that',
    ).not.toContain(first);
    const clock = vi.spyOn(world.running.broker, 'clock').mockImplementation(() => Date.now() + 120_000);
    const older = `/owner/audit?limit=200&before=${second}`;
    expect(
      (await ask(older)).body.rows.map(({ id }: { id: string }) => id),
      'older than a minute',
    ).toContain(first);
    clock.mockRestore();
    await onStandby('select pg_wal_replay_resume()');
    await followed();
    expect(await exported()).toContain(second);
    expect(aboutIt()).toEqual([]);
  });

  test('gives a complete export of the receipt log', async () => {
    await call();
    await expect
      .poll(async () => {
        const { size, waiting, checkpoint } = (await ask('/owner/log')).body;
        return waiting === 0 && checkpoint?.size === size;
      })
      .toBe(true);
    await followed();
    await onStandby('select pg_wal_replay_pause()');
    const { size: before } = (await ask('/owner/log')).body;
    await call();
    await expect.poll(async () => (await ask('/owner/log')).body.checkpoint?.size).toBeGreaterThan(before);
    const [header, ...lines] = await linesOf('/owner/log/export');
    expect(header.size).toBe(before);
    expect(lines.filter(({ type }) => type === 'row').length).toBeGreaterThan(0);
    await onStandby('select pg_wal_replay_resume()');
    await followed();
  });

  test('is not read while it lags, which is logged once, and is read again when it has caught up', async () => {
    await onStandby('select pg_wal_replay_pause()');
    await advanceHeartbeats();
    const fresh = await call();
    await nextCheck();
    expect(await exported()).toContain(fresh);
    expect(await exported()).toContain(fresh);
    await nextCheck();
    expect(await exported()).toContain(fresh);
    expect(aboutIt()).toEqual([
      expect.stringMatching(/^warn: the standby of DATABASE_READ_URL is not read: .* "The standby is \d+ s behind\."$/),
    ]);
    await onStandby('select pg_wal_replay_resume()');
    await followed();
    await nextCheck();
    expect(await exported()).toContain(fresh);
    expect(aboutIt()).toEqual([expect.stringMatching(/^info: the standby of DATABASE_READ_URL is read again/)]);
  });

  test('when lost during a report is replaced by the primary for the rest of that report', async () => {
    const reports = await world.running.broker.store.reports();
    const count = async () => {
      const rows = await reports.selectFrom('audit_rows').select('id').execute();
      return rows.map(({ id }) => id);
    };
    await onStandby('select pg_wal_replay_pause()');
    const fresh = await call();
    expect(await count()).not.toContain(fresh);
    await standby.halt('SIGKILL');
    expect(await count()).toContain(fresh);
    expect(await exported()).toContain(fresh);
    expect(aboutIt()).toEqual([expect.stringMatching(/^warn: the standby of DATABASE_READ_URL is not read/)]);
    await standby.resume();
    await followed();
    await onStandby('select pg_wal_replay_pause()');
    const newer = await call();
    await nextCheck();
    expect(await exported(), 'is read again').not.toContain(newer);
    expect(await count(), 'the report that left it').toContain(newer);
    expect(aboutIt()).toEqual([expect.stringMatching(/^info: the standby of DATABASE_READ_URL is read again/)]);
    await onStandby('select pg_wal_replay_resume()');
    await followed();
  });

  test('a statement that it cancels for its recovery is executed by the primary', async () => {
    const reports = await world.running.broker.store.reports();
    await reports.selectFrom('meta').selectAll().execute();
    await onStandby(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
    );
    expect((await reports.selectFrom('meta').selectAll().execute()).length).toBeGreaterThan(0);
    await nextCheck();
    await exported();
    aboutIt();
  });

  test.each([
    ['of another store', async () => await otherStore()],
    ['without a store', async () => await primary.createDatabase('empty')],
    ['where nobody answers', async () => 'postgres://bench:wrong@127.0.0.1:1/broker'],
  ])('a server %s is not read, and reports are complete', async (_, server) => {
    const elsewhere = await startWorld('sqlite', {
      DATABASE_URL: await primary.createDatabase(`own_${randomUUID()}`),
      DATABASE_READ_URL: await server(),
    });
    const { store } = elsewhere.running.broker;
    expect(await store.reports()).toBe(store.db);
    const { owner } = await elsewhere.organisation();
    const authorization = `Bearer ${mintOwnerSession(elsewhere.running.broker, owner).token}`;
    await expectStatus(200, send(`${elsewhere.running.baseUrl}/owner/audit/export`, { headers: { authorization } }));
  });

  /** Returns a database of another broker on the same server, with current heartbeats. */
  const otherStore = async () => {
    const other = await primary.createDatabase(`other_${randomUUID()}`);
    await startWorld('sqlite', { DATABASE_URL: other });
    return other;
  };

  test('is not read any more once it was promoted', async () => {
    await standby.promote();
    await vi.waitUntil(() => read(standby.urlOf('broker'), 'select not pg_is_in_recovery()'), { timeout: 15_000 });
    await advanceHeartbeats();
    const fresh = await call();
    await nextCheck();
    expect(await exported()).toContain(fresh);
    expect(aboutIt()).toEqual([expect.stringMatching(/^warn: .* behind\."$/)]);
    expect(said.join()).not.toContain(CANARY);
  });
});
