/** The address of the database resolves to a standby for a while, as after a failover with a late DNS update. */
import pg from 'pg';
import { expect, test, vi } from 'vitest';
import { startPostgres } from '../../bench/postgres.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { startFaultProxy } from '../world/servers/fault-proxy.ts';
import { STORES } from '../world/stores.ts';
import { READ, startWorld } from '../world/world.ts';

test.runIf(STORES.includes('postgres'))(
  'connections to a standby are refused: nothing is read from it, and calls continue at the primary',
  async () => {
    const primary = await startPostgres({ settings: ['--fsync=off', '--full_page_writes=off'] });
    if (!primary) throw new Error('PostgreSQL (initdb, postgres, pg_basebackup) is not installed here.');
    afterFile(() => primary.stop());
    const url = await primary.createDatabase('broker');
    const standby = await primary.addStandby();
    afterFile(() => standby.stop());
    const wire = await startFaultProxy(url);
    const world = await startWorld('sqlite', { DATABASE_URL: wire.url });
    const organisation = await world.organisation();
    await organisation.platform();
    const agent = await organisation.agent();
    const health = async () => await (await fetch(`${world.running.baseUrl}/health`)).text();
    expect((await agent.act(READ)).status).toBe(200);

    await wire.cut();
    await wire.repair(standby.urlOf('broker'));
    await vi.waitUntil(async () => (await health()).includes('standby'), { timeout: 30_000, interval: 100 });
    for (let i = 0; i < 5; i++) expect((await agent.act(READ)).status).toBe(503);

    wire.lead(url);
    await vi.waitUntil(async () => (await agent.act(READ)).status === 200, { timeout: 60_000, interval: 200 });
    const behind = new pg.Client({ connectionString: standby.urlOf('broker') });
    await behind.connect();
    await behind.query('select pg_wal_replay_pause()');
    await behind.end();
    const ended = await organisation.ask('POST', `/owner/agents/${agent.id}/revoke`, {
      reason: 'Its key was stolen.',
    });
    expect(ended.status, ended.text).toBe(200);
    for (let i = 0; i < 5; i++) expect((await agent.act(READ)).body).toMatchObject({ reason: 'agent_revoked' });
  },
  180_000,
);
