import { sql } from 'kysely';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { readConfig } from '../../broker/environment/config.ts';
import { serve } from '../../broker/process/main.ts';
import { send } from '../world/agent.ts';
import { expectEnvelope, withoutCalls } from '../world/evidence.ts';
import { hideTables, startFaultProxy } from '../world/servers/fault-proxy.ts';
import {
  administer,
  nameOf,
  newDatabase,
  newFolder,
  newMigratedDatabase,
  postgresNote,
  STORES,
} from '../world/stores.ts';
import { READ, startWorld, type World } from '../world/world.ts';

/** Waits for a readiness status; a write within the last second counts as current. */
const readinessIs = ({ running }: World, status: number) =>
  vi.waitUntil(async () => (await send(`${running.baseUrl}/readyz`, {})).status === status, { timeout: 5_000 });

/** Collects log lines from now on. */
function linesOf({ running: { broker } }: World): string[] {
  const lines: string[] = [];
  for (const level of ['error', 'warn', 'info'] as const) {
    const spy = vi.spyOn(broker.log, level).mockImplementation((...said: unknown[]) => {
      lines.push(`${level}: ${said.at(-1)}`);
    });
    onTestFinished(() => spy.mockRestore());
  }
  return lines;
}

describe.each(STORES)(`the store is unavailable on %s${postgresNote}`, (store) => {
  test('ST-01 every route reports it, nothing is sent, and calls succeed when the store is available again', async () => {
    const cut = store === 'postgres' ? await startFaultProxy(await newDatabase()) : undefined;
    const world = await startWorld('sqlite', { ...(cut && { DATABASE_URL: cut.url }) });
    const organisation = await world.organisation();
    await organisation.platform();
    const agent = await organisation.agent();
    expect((await agent.act(READ)).status).toBe(200);
    const lines = linesOf(world);
    await cut?.cut();
    const show = cut ? cut.repair : await hideTables(world.db);
    const answers = [
      await withoutCalls(world, () => agent.act(READ)),
      await agent.get('/v1/agents/me'),
      await agent.get('/v1/agent/permissions'),
    ];
    for (const answer of answers) {
      expectEnvelope(answer, 503, 'store_unavailable');
      expect(answer.headers.get('retry-after')).toBe('5');
      expect(answer.text.includes('Nothing was sent'), 'of calls alone').toBe(answer === answers[0]);
      expect(answer.text).not.toMatch(/sqlite|postgres|no such table|ECONN/i);
    }
    if (cut) await readinessIs(world, 503);
    await show();
    expect((await agent.act(READ)).status).toBe(200);
    await readinessIs(world, 200);
    if (!cut) return;
    const about = lines.filter((line) => /the store (does|answers)|unforeseen/.test(line));
    expect(about, 'however many calls it failed').toEqual([
      'error: the store does not answer',
      'info: the store answers again',
    ]);
  });
});

describe.runIf(STORES.includes('postgres'))(`a database that accepts no connections on postgres${postgresNote}`, () => {
  test('calls are answered 503 like in any outage, whatever SQLSTATE refuses the connection, and the start names PostgreSQL', async () => {
    const url = await newMigratedDatabase();
    const world = await startWorld('sqlite', { DATABASE_URL: url, DATABASE_CONNECTIONS: '8' });
    const organisation = await world.organisation();
    await organisation.platform();
    const agent = await organisation.agent();
    expect((await agent.act(READ)).status).toBe(200);
    const lines = linesOf(world);
    const close = async () => {
      await administer(`alter database ${nameOf(url)} allow_connections false`);
      await administer(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${nameOf(url)}'`);
    };
    const open = () => administer(`alter database ${nameOf(url)} allow_connections true`);
    await close();
    onTestFinished(open);
    await readinessIs(world, 503);
    expectEnvelope(await withoutCalls(world, () => agent.act(READ)), 503, 'store_unavailable');
    expectEnvelope(await agent.get('/v1/agent/permissions'), 503, 'store_unavailable');
    expectEnvelope(await organisation.ask('GET', '/owner/approvals'), 503, 'store_unavailable');
    const config = readConfig({ PORT: '0', LOG_LEVEL: 'silent', AGENT_BROKER_DATA: newFolder(), DATABASE_URL: url });
    await expect(serve(config)).rejects.toThrow(
      /^PostgreSQL at .* \(DATABASE_URL\) refuses the broker: database ".*" is not currently accepting connections\.$/,
    );
    await open();
    await readinessIs(world, 200);
    await vi.waitUntil(async () => (await agent.act(READ)).status === 200);
    expect(lines.filter((line) => line.includes('unforeseen'))).toEqual([]);
  });
});

describe.runIf(STORES.includes('postgres'))(`a deadlock of two writers on postgres${postgresNote}`, () => {
  test('ST-10 the request whose transaction is rolled back is answered with a retryable error, and a retry succeeds', {
    timeout: 180_000,
  }, async () => {
    const world = await startWorld('postgres');
    const organisation = await world.organisation();
    await organisation.platform();
    const agent = await organisation.agent({ grants: { demo: { scopeList: ['demo:read'] } } });
    const { broker } = world.running;
    const ask = (scope: string) => agent.post('/v1/access-request', { platform: 'demo', scope });
    expect((await ask('demo:write')).status).toBe(202);
    world.clock.skewMs = 25 * 3600 * 1000;
    // The broker locks the agent first, then its expired requests; the other writer locks them in the reverse order.
    const answer = await broker.store.db.transaction().execute(async (tx) => {
      // The other writer detects deadlocks late, so that the broker's transaction is rolled back.
      await sql`set local deadlock_timeout = '30s'`.execute(tx);
      await tx.updateTable('access_requests').set({ reason: 'x' }).where('agent_id', '=', agent.id).execute();
      const asked = ask('demo:delete');
      await vi.waitUntil(
        async () => {
          const { rows } = await sql`select 1 from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock'`.execute(broker.store.db);
          return rows.length > 0;
        },
        { timeout: 20_000, interval: 5 },
      );
      await tx.updateTable('agents').set({ name: 'y' }).where('id', '=', agent.id).execute();
      return await asked;
    });
    expectEnvelope(answer, 409, 'conflict');
    expect(answer.body.detail).toContain('Concurrent update');
    expect(answer.headers.get('retry-after')).toBe('1');
    expect((await ask('demo:delete')).status).toBe(202);
  });
});
