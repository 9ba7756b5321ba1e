/** A running broker on a disk whose syncs fail with EIO. */
import { expect, onTestFinished, test } from 'vitest';
import { send } from '../world/agent.ts';
import { spawnBroker } from '../world/broker-process.ts';
import { failingSync } from '../world/failing-sync.ts';
import { query } from '../world/store-contents.ts';
import { startWorld } from '../world/world.ts';

const disk = failingSync();

test.runIf(disk)(
  `ST-09 while syncs fail nothing is sent, and no row whose call was answered is lost, not even by a kill${disk ? '' : ' (skipped: no compiler here)'}`,
  async () => {
    const { environment: broken, fail, repair } = disk!;
    const world = await startWorld('sqlite');
    const organisation = await world.demoOrganisation();
    const agent = await organisation.agent();
    await world.running.stop();
    const environment = { ...world.environment, PORT: new URL(agent.baseUrl).port };
    const child = spawnBroker({ ...environment, ...broken });
    onTestFinished(() => child.signal('SIGKILL'));
    expect(await child.serve(), child.output().stderr).toBeDefined();
    const change = (item: string) =>
      agent.act({ platform: 'demo', endpoint: `/items/${item}`, method: 'PATCH', scope: 'demo:write', data: { a: 1 } });
    const sent = () => world.upstream.seen.map(({ target }) => target.split('/').at(-1));

    expect((await change('before')).status).toBe(200);
    fail();
    for (const item of ['first', 'second', 'third']) {
      const answer = await change(item);
      expect([answer.status, answer.body.error], answer.text).toEqual([503, 'audit_unavailable']);
      expect(answer.body.detail).toContain('nothing was sent');
    }
    expect(sent()).toEqual(['before']);
    const health = await send(`${agent.baseUrl}/health`, {});
    expect([health.status, health.body.status]).toEqual([503, 'unavailable']);
    repair();
    await expect.poll(async () => (await change('after')).status, { timeout: 15_000 }).toBe(200);
    const made = sent();
    expect(new Set(made)).toEqual(new Set(['before', 'after']));

    child.signal('SIGKILL');
    await child.ended;
    expect(await query(environment, 'pragma integrity_check')).toEqual([{ integrity_check: 'ok' }]);
    const rows = await query(
      environment,
      `select path, result, reason from audit_rows where path in ('/items/before', '/items/after') and result = 'allowed' and state = 'final'`,
    );
    expect(rows.map(({ path }) => String(path).split('/').at(-1)).sort()).toEqual([...made].sort());
    const refused = await query(
      environment,
      `select result, reason from audit_rows where path in ('/items/first', '/items/second', '/items/third')`,
    );
    for (const row of refused) expect(row).toEqual({ result: 'errored', reason: 'audit_unavailable' });

    const next = spawnBroker(environment);
    onTestFinished(() => next.signal('SIGKILL'));
    expect(await next.serve(), next.output().stderr).toBeDefined();
    expect((await change('next')).status).toBe(200);
  },
);
