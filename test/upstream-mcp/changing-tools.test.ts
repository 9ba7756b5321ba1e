/** A server whose description of a tool differs each time, such as by the time or the caller, causes an occasional event, and not one per call. */
import { expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { listAuditRows } from '../world/rows.ts';
import { ONE_STORE } from '../world/stores.ts';
import { MINUTE_MS } from '../world/times.ts';
import { fresh, givenWorld } from '../world/world.ts';
import { SCOPES } from './connected.ts';

const READ = { platform: 'tools', endpoint: '/tools/search_issues', method: 'POST', scope: 'tools:search.read' };

const [store] = ONE_STORE;
const world = givenWorld(store!);
const organisation = fresh(() => world.organisation());

test('calls of other tools cause at most one event a minute', async () => {
  let said = 0;
  world.upstream.answer = (_request, response, body) => {
    const { id, method } = JSON.parse(body) as { id: string; method: string };
    const clock = { name: 'write_note', description: `It is ${said++} o'clock.`, inputSchema: { type: 'object' } };
    const tools = [{ name: 'search_issues', inputSchema: { type: 'object' } }, clock];
    const result = method === 'tools/list' ? { tools } : { content: [] };
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ jsonrpc: '2.0', id, result }));
  };
  const manifest = { kind: 'mcp', base_url: `${world.upstream.url}/mcp`, scopes: SCOPES };
  await organisation.platform({ id: 'tools', manifest });
  const policy = await organisation.policy([{ effect: 'allow' }]);
  const agent = await organisation.agent({ policy, grants: { tools: { scopeList: Object.keys(SCOPES) } } });
  const call = () => expectStatus(200, agent.act(READ));
  const events = async () =>
    (await listAuditRows(world.db, organisation.id, { limit: 100 })).filter(
      ({ reason }) => reason === 'mcp_tools_changed',
    ).length;

  for (let made = 0; made < 10; made++) await call();
  expect(await events()).toBe(1);
  world.clock.skewMs += MINUTE_MS;
  await call();
  expect(await events()).toBe(2);
  // An owner who refreshes the page sees the newest description.
  const looked = await expectStatus(200, organisation.ask('POST', '/owner/platforms/tools/tools/refresh'));
  const shown = looked.body.tools.find(({ name }: { name: string }) => name === 'write_note');
  expect([shown.state, shown.offered.description]).toEqual(['changed', `It is ${said - 1} o'clock.`]);
});
