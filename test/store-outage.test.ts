import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { send } from './world/agent.ts';
import { startCut } from './world/cut.ts';
import { expectEnvelope, withoutCalls } from './world/evidence.ts';
import { newDatabase, postgresNote, STORES } from './world/stores.ts';
import { startWorld } from './world/world.ts';

const READ = { platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' };

describe.each(STORES)(`the store is away on %s${postgresNote}`, (store) => {
  test('ST-01 every route says so, nothing is sent, and all is well when it is back', async () => {
    const cut = store === 'postgres' ? await startCut(await newDatabase()) : undefined;
    const world = await startWorld('sqlite', { ...(cut && { DATABASE_URL: cut.url }) });
    const organisation = await world.organisation();
    await organisation.platform();
    const agent = await organisation.agent();
    expect((await agent.act(READ)).status).toBe(200);
    const { db } = world.running.broker.store;
    if (cut) await cut.cut();
    else await sql`alter table agents rename to gone`.execute(db);
    for (const answer of [
      await withoutCalls(world, () => agent.act(READ)),
      await agent.get('/v1/agents/me'),
      await agent.get('/v1/agent/permissions'),
      ...(cut ? [await send(`${world.running.baseUrl}/health`, {})] : []),
    ]) {
      expectEnvelope(answer, 503, 'store_unavailable');
      expect(answer.headers.get('retry-after')).toBe('5');
      expect(answer.text).not.toMatch(/sqlite|postgres|no such table|ECONN/i);
    }
    if (cut) await cut.mend();
    else await sql`alter table gone rename to agents`.execute(db);
    expect((await agent.act(READ)).status).toBe(200);
    expect((await send(`${world.running.baseUrl}/health`, {})).body).toEqual({ status: 'ok' });
  });
});
