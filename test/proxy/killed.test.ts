/** A broker killed in the middle of a stream: the client's answer breaks off, and the row says that the outcome is unknown. */
import { expect, test } from 'vitest';
import { spawnBroker } from '../world/broker-process.ts';
import { query } from '../world/store-contents.ts';
import { ALLOW_ALL, startWorld } from '../world/world.ts';

test('kill -9 in the middle of a stream: the next start closes its row, and the request is not made again', async () => {
  const world = await startWorld('sqlite', { LOG_LEVEL: 'warn' });
  const organisation = await world.demoOrganisation();
  const agent = await organisation.agent({ rules: ALLOW_ALL });
  await world.running.stop();
  const environment = { ...world.environment, PORT: new URL(agent.baseUrl).port };
  const child = spawnBroker(environment);
  expect(await child.serve(), child.output().stderr).toBe(agent.baseUrl);
  world.upstream.answer = (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('data: one\n\n');
  };
  const response = await fetch(`${agent.baseUrl}/proxy/demo-main/items`, {
    headers: { authorization: `Bearer ${agent.token()}` },
  });
  const reader = response.body!.getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toBe('data: one\n\n');
  const id = response.headers.get('x-svc-audit-id');
  child.signal('SIGKILL');
  await expect(reader.read()).rejects.toThrow();
  await child.ended;
  expect(await query(environment, 'select id, state from audit_rows')).toEqual([{ id, state: 'intent' }]);
  const next = spawnBroker(environment);
  expect(await next.serve(), next.output().stderr).toBe(agent.baseUrl);
  const [row] = await query(environment, 'select * from audit_rows');
  expect(row).toMatchObject({ id, state: 'final', result: 'errored', reason: 'outcome_unknown' });
  expect(JSON.parse(String(row?.flags))).toMatchObject({ ended: 'unknown' });
  expect((await agent.get(`/v1/audit/${id}/receipt`)).status).toBe(200);
  expect(world.upstream.seen).toHaveLength(1);
  next.signal('SIGTERM');
  await next.ended;
});
