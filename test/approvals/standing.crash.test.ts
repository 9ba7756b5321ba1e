/** Uses of a standing approval around kill -9, with real processes: never more uses than allowed, and each recorded. */
import { describe, expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { spawnBroker } from '../world/broker-process.ts';
import { thorough } from '../world/runner/thorough.ts';
import { query } from '../world/store-contents.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { startWorld } from '../world/world.ts';

const USES = 9;
/** Which use of a process kills it. */
const KILLS = thorough ? [1, 3] : [3];
const CALL = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data: { to: 'ann' } };

describe.each(STORES)(`a standing approval and kill -9 on %s${postgresNote}`, (store) => {
  test('used calls stay used and recorded after a crash, and no further call is sent', async () => {
    const world = await startWorld(store, { LOG_LEVEL: 'warn' });
    const organisation = await world.demoOrganisation();
    const agent = await organisation.agent();
    const approval_id = await agent.hold(CALL);
    const standing = { count: USES, for_seconds: 3600, free: [] };
    await expectStatus(200, organisation.approve(approval_id, { standing }));
    await world.running.stop();
    const environment = {
      ...world.environment,
      PORT: new URL(world.running.baseUrl).port,
      TEST_BEAT_MS: '250',
    };
    world.upstream.seen.length = 0;
    const spawn = async () => {
      const child = spawnBroker(environment);
      expect(await child.serve(), child.output().stderr).toBeDefined();
      return child;
    };
    for (const killAt of KILLS) {
      const child = await spawn();
      let here = 0;
      world.upstream.answer = (request, response) => {
        if (++here >= killAt) {
          child.signal('SIGKILL');
          request.socket.destroy();
        } else response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
      };
      await Promise.all(Array.from({ length: 4 }, () => agent.act(CALL).catch(() => undefined)));
      await child.ended;
    }
    world.upstream.answer = undefined;
    const last = await spawn();
    const codes: number[] = [];
    while (!codes.includes(202) && codes.length <= USES) codes.push((await agent.act(CALL)).status);
    expect(codes.at(-1)).toBe(202);
    expect(world.upstream.seen.length).toBeLessThanOrEqual(USES);
    // Rows of the killed processes are closed as unknown by the next one.
    const rows = async () =>
      (await query(environment, `select state, flags from audit_rows where kind = 'action'`)).filter(({ flags }) =>
        String(flags ?? '').includes('"standing_approval":{'),
      );
    const left = (await rows()).map(({ flags }) => JSON.parse(String(flags)).standing_approval.left as number);
    expect(left.sort((a, b) => a - b)).toEqual(Array.from({ length: USES }, (_, i) => i));
    last.signal('SIGTERM');
    await last.ended;
  }, 180_000);
});
