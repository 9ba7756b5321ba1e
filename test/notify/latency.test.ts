/** How long it takes from the answer of a held call to its notice: two seconds at most, at the 99th percentile. */
import { beforeAll, describe, expect, test } from 'vitest';
import { afterFile } from '../world/after-file.ts';
import { type ChannelServer, startChannelServer } from '../world/channel-server.ts';
import { givenWorld } from '../world/given.ts';
import { WRITE } from '../world/requests.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { sized } from '../world/thorough.ts';

const AGENTS = 5;
/** Of each; more than 100 may not wait. */
const CALLS = Number(process.env.NOTICE_CALLS ?? sized(20, 60));

/** Of an agent between two calls. */
const PAUSE_MS = Number(process.env.NOTICE_PAUSE_MS ?? 200);

let server: ChannelServer;
const cameAt = new Map<string, number>();
beforeAll(async () => {
  server = await startChannelServer();
  server.answer = (_request, response, body) => {
    cameAt.set(JSON.parse(body).data.id, performance.now());
    response.writeHead(204).end();
  };
  afterFile(() => server.close());
});

describe.each(STORES)(`latency on %s${postgresNote}`, (store) => {
  const world = givenWorld(store, () => ({ AGENT_BROKER_ALLOW_PRIVATE: server.address }));

  test('held to notice', async () => {
    const organisation = await world.demoOrganisation();
    const agents = await Promise.all(Array.from({ length: AGENTS }, (_, i) => organisation.agent({ name: `a${i}` })));
    const hook = { name: 'hook', kind: 'webhook', url: `${server.url}/hook` };
    await organisation.ask('POST', '/owner/channels', hook);
    const answered = new Map<string, number>();
    await Promise.all(
      agents.map(async (agent) => {
        for (let i = 0; i < CALLS; i++) {
          const { body } = await agent.act({ ...WRITE, data: { i } });
          answered.set(body.approval_id, performance.now());
          await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
        }
      }),
    );
    await expect.poll(() => [...answered.keys()].every((id) => cameAt.has(id)), { timeout: 20_000 }).toBe(true);
    const taken = [...answered].map(([id, at]) => cameAt.get(id)! - at).toSorted((a, b) => a - b);
    const at = (share: number) => taken[Math.ceil(share * taken.length) - 1]!;
    const told = `held to notice on ${store}: p50 ${at(0.5).toFixed()} ms, p99 ${at(0.99).toFixed()} ms, of ${taken.length}`;
    process.stdout.write(`${told}\n`);
    expect(at(0.99), told).toBeLessThan(2_000);
  }, 180_000);
});
