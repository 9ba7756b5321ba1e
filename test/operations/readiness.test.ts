import { execFileSync } from 'node:child_process';
import { sql } from 'kysely';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Answer, send, type TestAgent } from '../world/agent.ts';
import { spawnBroker } from '../world/broker-process.ts';
import { expectDeclared } from '../world/declared-routes.ts';
import { withoutCalls } from '../world/evidence.ts';
import { startFaultProxy } from '../world/servers/fault-proxy.ts';
import { newMigratedDatabase, postgresNote, STORES } from '../world/stores.ts';
import { READ, startWorld, type World } from '../world/world.ts';

const TOKEN = 'metrics-token-0123456789';

async function startWithAgent(environment: Record<string, string> = {}): Promise<{ world: World; agent: TestAgent }> {
  const world = await startWorld('sqlite', { METRICS_TOKEN: TOKEN, ...environment });
  const organisation = await world.organisation();
  await organisation.platform();
  return { world, agent: await organisation.agent() };
}

/** Waits for a status; a write within the last second counts as current. */
const becomes = (baseUrl: string, status: number): Promise<boolean> =>
  vi.waitUntil(async () => (await send(`${baseUrl}/readyz`, {})).status === status, { timeout: 10_000, interval: 50 });

/** Expects what probes and people get while the store is not writable. */
async function expectUnready(baseUrl: string, reason: RegExp): Promise<void> {
  const ask = (path: string, headers: Record<string, string> = {}): Promise<Answer> =>
    send(baseUrl + path, { headers }).then((answer) => {
      expectDeclared('GET', path, answer);
      return answer;
    });
  expect((await ask('/livez')).body).toEqual({ status: 'ok' });
  for (const path of ['/readyz', '/health']) {
    const told = await ask(path);
    expect([told.status, told.body], told.text).toEqual([
      503,
      { status: 'unavailable', reasons: [expect.stringMatching(reason)] },
    ]);
    // A request through a proxy on this machine may come from anywhere.
    const stranger = await ask(path, { 'x-forwarded-for': '203.0.113.9' });
    expect([stranger.status, stranger.body]).toEqual([503, { status: 'unavailable' }]);
    const guessed = await ask(path, { 'x-forwarded-for': '203.0.113.9', authorization: 'Bearer x' });
    expect(guessed.body).toEqual({ status: 'unavailable' });
    const monitoring = await ask(path, { 'x-forwarded-for': '203.0.113.9', authorization: `Bearer ${TOKEN}` });
    expect(monitoring.body.reasons).toHaveLength(1);
  }
}

describe('a broker that cannot write is not ready', () => {
  test('while its SQLite store is read-only', async () => {
    const { world } = await startWithAgent();
    const { baseUrl, broker } = world.running;
    expect((await send(`${baseUrl}/readyz`, {})).body).toEqual({ status: 'ok' });
    await sql`pragma query_only = 1`.execute(broker.store.db);
    await becomes(baseUrl, 503);
    await expectUnready(baseUrl, /cannot be written.*readonly/);
    await sql`pragma query_only = 0`.execute(broker.store.db);
    await becomes(baseUrl, 200);
  });

  test('while the disk of its SQLite store is full: nothing is sent, and it recovers when there is space', async () => {
    const { world, agent } = await startWithAgent();
    await world.running.stop();
    // With a file size limit writes fail in the middle, as on a full disk. The signal for it (SIGXFSZ) is ignored.
    const child = spawnBroker(
      { ...world.environment, PORT: new URL(agent.baseUrl).port, TEST_BEAT_MS: '100', LOG_LEVEL: 'info' },
      ['--import', 'data:text/javascript,process.on("SIGXFSZ", () => {})'],
    );
    onTestFinished(() => child.signal('SIGKILL'));
    expect(await child.serve(), child.output().stderr).toBeDefined();
    const limit = (bytes: string) => execFileSync('prlimit', ['--pid', `${child.pid}`, `--fsize=${bytes}:unlimited`]);
    expect((await agent.act(READ)).status).toBe(200);
    limit('0');
    await becomes(agent.baseUrl, 503);
    for (let i = 0; i < 3; i++)
      expect((await agent.act(READ)).body.error).toMatch(/audit_unavailable|store_unavailable/);
    expect((await withoutCalls(world, () => agent.act(READ))).body.error).toBe('audit_unavailable');
    limit('unlimited');
    await becomes(agent.baseUrl, 200);
    expect((await agent.act(READ)).status).toBe(200);
    // Logged at the beginning and at the end, not for each call.
    const lines = child.output().stderr.split('\n');
    const saying = (text: string) => lines.filter((line) => line.includes(text)).length;
    expect([saying('unforeseen error'), saying('cannot rollback')]).toEqual([0, 0]);
    expect(saying('"the store answers again"') + saying('"audit rows are stored again"')).toBeGreaterThan(0);
  });
});

describe.runIf(STORES.includes('postgres'))(`a broker whose PostgreSQL cannot be written${postgresNote}`, () => {
  test('read-only, as after a failover: the broker reports it, and is ready again afterwards', async () => {
    const url = await newMigratedDatabase();
    const { world } = await startWithAgent({ DATABASE_URL: url });
    const name = sql.raw(new URL(url).pathname.slice(1));
    const { baseUrl, broker } = world.running;
    const { db } = broker.store;
    const turn = async (value: string) => {
      await db.transaction().execute(async (tx) => {
        await sql`set transaction read write`.execute(tx);
        await sql`alter database ${name} set default_transaction_read_only = ${sql.raw(value)}`.execute(tx);
      });
      await sql`select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()`.execute(db);
      await sql`select pg_terminate_backend(pg_backend_pid())`.execute(db).catch(() => {});
    };
    await turn('on');
    await becomes(baseUrl, 503);
    await vi.waitUntil(async () => (await send(`${baseUrl}/health`, {})).text.includes('read-only'), {
      timeout: 5_000,
    });
    await expectUnready(baseUrl, /cannot be written.*read-only/);
    await turn('off');
    await becomes(baseUrl, 200);
  });

  test('hanging: probes are answered within a second, and the broker is ready again once the database is', async () => {
    const cut = await startFaultProxy(await newMigratedDatabase());
    const { world } = await startWithAgent({ DATABASE_URL: cut.url });
    const { baseUrl } = world.running;
    cut.freeze();
    await becomes(baseUrl, 503);
    const began = performance.now();
    await expectUnready(baseUrl, /does not answer/);
    // Nine probes, most of which take up to a second; each would have waited for 15 s without the timeout.
    expect((performance.now() - began) / 9).toBeLessThan(1_000);
    cut.thaw();
    await becomes(baseUrl, 200);
  });
});
