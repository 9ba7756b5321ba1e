/** A broker that is killed while an MCP server lists its tools for the first time: the request is recorded in the audit. */
import { expect, test } from 'vitest';
import { spawnBroker } from '../world/broker-process.ts';
import { verifyReceipt } from '../world/evidence.ts';
import { startWorld } from '../world/world.ts';
import { connected, SEARCH } from './connected.ts';

test('the list request before the call has an audit row that says it was a read', async () => {
  const world = await startWorld();
  const { agent, organisation } = await connected(world, { url: `${world.upstream.url}/mcp` });
  await world.running.stop();
  const environment = { ...world.environment, PORT: new URL(world.running.baseUrl).port };
  const child = spawnBroker(environment);
  world.upstream.answer = () => child.signal('SIGKILL');
  expect(await child.serve(), child.output().stderr).toBe(world.running.baseUrl);
  await expect(agent.act(SEARCH)).rejects.toThrow();
  expect(await child.ended).toEqual({ code: null, signal: 'SIGKILL' });
  expect(world.upstream.seen.map(({ body }) => JSON.parse(body).method)).toEqual(['tools/list']);

  await world.restart();
  const { rows } = (await organisation.ask('GET', '/owner/audit?kind=action')).body;
  expect(rows).toMatchObject([
    { result: 'errored', reason: 'outcome_unknown', method: 'GET', path: '/tools', scope: SEARCH.scope },
  ]);
  const { receipt } = (await agent.get(`/v1/audit/${rows[0].id}/receipt`)).body;
  expect((await verifyReceipt(world, receipt)).payload).toMatchObject({ jti: rows[0].id, path: '/tools' });
});
