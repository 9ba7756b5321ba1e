/** A server that lists different tools each time: the stored ones that nobody accepted are bounded, and replaced over time. */
import { expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { ONE_STORE } from '../world/stores.ts';
import { HOUR_MS } from '../world/times.ts';
import { fresh, givenWorld } from '../world/world.ts';

const SCOPES = { 'tools:all': ['tool *'] };
const callOf = (tool: string) => ({
  platform: 'tools',
  endpoint: `/tools/${tool}`,
  method: 'POST',
  scope: 'tools:all',
});
const toolOf = (name: string) => ({ name, inputSchema: { type: 'object' } });

const [store] = ONE_STORE;
const world = givenWorld(store!);
const organisation = fresh(() => world.organisation());

test('a new tool can be accepted after a server listed thousands of others that nobody accepted', async () => {
  let listed = ['echo'];
  world.upstream.answer = (_request, response, body) => {
    const { id, method } = JSON.parse(body) as { id: string; method: string };
    const result = method === 'tools/list' ? { tools: listed.map(toolOf) } : { content: [] };
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ jsonrpc: '2.0', id, result }));
  };
  const manifest = { kind: 'mcp', base_url: `${world.upstream.url}/mcp`, scopes: SCOPES };
  await organisation.platform({ id: 'tools', manifest });
  const policy = await organisation.policy([{ effect: 'allow' }]);
  const agent = await organisation.agent({ policy, grants: { tools: { scopeList: Object.keys(SCOPES) } } });
  const echo = () => expectStatus(200, agent.act(callOf('echo')));
  const kept = async () => (await organisation.ask('GET', '/owner/platforms/tools/tools')).body.tools;

  await echo();
  for (const round of ['a', 'b', 'c']) {
    listed = ['echo', ...Array.from({ length: 999 }, (_, at) => `${round}_${at}`)];
    await echo();
  }
  expect(await kept()).toHaveLength(2_000);

  listed = ['echo', 'newcomer'];
  world.clock.skewMs += HOUR_MS;
  const refused = await agent.act(callOf('newcomer'));
  expect([refused.status, refused.body.detail], refused.text).toEqual([
    403,
    expect.stringContaining('An owner has to review and accept it'),
  ]);
  await echo();
  const tools = await kept();
  expect(tools.map(({ name }: { name: string }) => name)).toEqual(['echo', 'newcomer']);
  const { hash } = tools[1];
  expect((await organisation.ask('POST', '/owner/platforms/tools/tools/newcomer/accept', { hash })).status).toBe(200);
  await expectStatus(200, agent.act(callOf('newcomer')));
});
