import { beforeAll, describe, expect, test } from 'vitest';
import type { TestAgent } from './world/agent.ts';
import { postgresNote, STORES } from './world/stores.ts';
import { type Organisation, startWorld, type World } from './world/world.ts';

const JSON_BODY = { 'content-type': 'application/json' };

describe.each(STORES)(`POST /v1/agents/self/diagnostics on %s${postgresNote}`, (store) => {
  let world: World;
  let organisation: Organisation;
  let agent: TestAgent;
  const report = (body: unknown) =>
    agent.request('POST', '/v1/agents/self/diagnostics', { body: JSON.stringify(body), headers: JSON_BODY });

  beforeAll(async () => {
    world = await startWorld(store);
    organisation = await world.organisation();
    await organisation.platform();
    agent = await organisation.agent();
  });

  test('the payload that a refusal suggests is taken as it is, and its owner reads it', async () => {
    const refused = await agent.act({ platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:nothing' });
    expect(refused.status).toBe(403);
    const { url, suggested_payload: payload } = refused.body.report_hint;
    expect(url).toBe(`${world.running.baseUrl}/v1/agents/self/diagnostics`);
    const stored = await report(payload);
    expect(stored.status).toBe(201);
    expect(Object.keys(stored.body).sort()).toEqual(['id', 'received_at']);
    const { body } = await organisation.ask('GET', '/owner/diagnostics');
    expect(body.diagnostics[0]).toMatchObject({
      id: stored.body.id,
      agent_id: agent.id,
      code: 'scope_not_granted',
      correlation_id: refused.body.correlation_id,
    });
  });

  test('another organisation does not see it', async () => {
    await report({ message: 'ours alone' });
    const other = await world.organisation();
    expect((await other.ask('GET', '/owner/diagnostics')).body.diagnostics).toEqual([]);
  });

  test.each([
    ['no message', {}, 'message'],
    ['an unknown severity', { message: 'x', severity: 'fatal' }, 'severity'],
    ['a context that is a list', { message: 'x', context: [] }, 'context'],
    ['a correlation id that is none', { message: 'x', correlation_id: 'abc' }, 'correlation_id'],
    ['an endpoint that is no text', { message: 'x', endpoint: 1 }, 'endpoint'],
    ['an unknown field', { message: 'x', secret: 1 }, 'secret'],
    ['NUL in the message', { message: 'a\u0000b' }, ''],
  ])('%s is a 400 that names the field', async (_what, body, field) => {
    const answer = await report(body);
    expect(answer.status).toBe(400);
    expect(answer.body.error).toBe('invalid_request');
    expect(answer.body.detail).toContain(field);
  });

  test('4 KiB of message and 16 KiB of context are taken, a byte more is a 413', async () => {
    expect((await report({ message: 'm'.repeat(4096) })).status).toBe(201);
    expect((await report({ message: 'm'.repeat(4097) })).status).toBe(413);
    const fits = 16 * 1024 - JSON.stringify({ c: '' }).length;
    expect((await report({ message: 'x', context: { c: 'c'.repeat(fits) } })).status).toBe(201);
    const large = await report({ message: 'x', context: { c: 'c'.repeat(fits + 1) } });
    expect(large.status).toBe(413);
    expect(large.body.error).toBe('payload_too_large');
  });

  test('without a bearer it is a 401', async () => {
    const answer = await fetch(`${world.running.baseUrl}/v1/agents/self/diagnostics`, {
      method: 'POST',
      headers: JSON_BODY,
      body: '{"message":"x"}',
    });
    expect(answer.status).toBe(401);
  });
});
