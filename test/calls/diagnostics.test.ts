import { describe, expect, test } from 'vitest';
import { uuidv7 } from '../../broker/crypto/ids.ts';
import { countDiagnostics, purgeDiagnostics } from '../../broker/store/diagnostics.ts';
import { expectStatus, makeKeyPair, type TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenWorld, shared } from '../world/world.ts';

const JSON_BODY = { 'content-type': 'application/json' };
const send = (agent: TestAgent) =>
  agent.request('POST', '/v1/agents/self/diagnostics', { body: '{"message":"x"}', headers: JSON_BODY });

describe.each(ONE_STORE)(`POST /v1/agents/self/diagnostics on %s${postgresNote}`, (store) => {
  const report = (body: unknown) => agent.post('/v1/agents/self/diagnostics', body);

  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent());

  test('the payload that a refusal suggests is accepted unchanged, and the agent’s owner can read it', async () => {
    const refused = await agent.act({ platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:nothing' });
    expect([refused.status, refused.body.reason]).toEqual([403, 'scope_not_granted']);
    const { url, suggested_payload: payload } = refused.body.report_hint;
    expect(url).toBe(`${world.running.baseUrl}/v1/agents/self/diagnostics`);
    const stored = await expectStatus(201, report(payload));
    expect(Object.keys(stored.body).sort()).toEqual(['id', 'received_at']);
    const { body } = await organisation.ask('GET', '/owner/diagnostics');
    expect(body.diagnostics[0]).toMatchObject({
      id: stored.body.id,
      agent_id: agent.id,
      code: 'scope_not_granted',
      correlation_id: refused.body.correlation_id,
    });
  });

  test('every member of a report is accepted, stored unchanged, and shown with its agent', async () => {
    const whole = {
      message: 'line one\nline two \u202e',
      severity: 'error',
      code: 'denied_by_policy',
      platform: 'demo',
      endpoint: '/items?x=1',
      correlation_id: crypto.randomUUID(),
      context: { tried: ['a', 1, null], nested: { deep: true } },
    };
    const stored = await report(whole);
    expect([stored.status, Object.keys(stored.body).sort()]).toEqual([201, ['id', 'received_at']]);
    const { body } = await organisation.ask('GET', '/owner/diagnostics?limit=1');
    expect(body.diagnostics).toEqual([
      {
        ...whole,
        ...stored.body,
        agent_id: agent.id,
        agent_public_id: agent.agentId,
        agent_name: 'triage',
      },
    ]);
    expect((await report({ message: 'alone' })).status).toBe(201);
    const alone = (await organisation.ask('GET', '/owner/diagnostics?limit=1')).body.diagnostics[0];
    expect(alone).toMatchObject({ severity: 'info', code: null, platform: null, endpoint: null, context: null });
  });

  test('owners can read reports page by page, and filter them by agent', async () => {
    const other = await organisation.agent({ name: 'other' });
    for (let i = 0; i < 3; i++) await other.post('/v1/agents/self/diagnostics', { message: `other ${i}` });
    await report({ message: 'of the first' });
    const path = `/owner/diagnostics?agent=${other.agentId}&limit=2`;
    const first = (await organisation.ask('GET', path)).body;
    expect(first.diagnostics.map(({ message }: { message: string }) => message)).toEqual(['other 2', 'other 1']);
    const second = (await organisation.ask('GET', `${path}&before=${first.next}`)).body;
    expect(second.diagnostics.map(({ message }: { message: string }) => message)).toEqual(['other 0']);
    expect(second.next).toBeNull();
    expect((await organisation.ask('GET', '/owner/diagnostics?agent=agt_aaaaaaaaaaaaaaaaaaaa')).body).toEqual({
      diagnostics: [],
      next: null,
    });
    for (const wrong of ['limit=0', 'limit=201', 'before=x'])
      expect(await organisation.ask('GET', `/owner/diagnostics?${wrong}`)).toMatchObject({
        status: 400,
        body: { error: 'invalid_request' },
      });
  });

  test('a halted agent may still report; an unknown one may not', async () => {
    const halted = await organisation.agent({ name: 'halted', agent: { status: 'suspended' } });
    const body = { body: '{"message":"why?"}', headers: JSON_BODY };
    expect((await halted.request('POST', '/v1/agents/self/diagnostics', body)).status).toBe(201);
    halted.keys = makeKeyPair();
    expect(await halted.request('POST', '/v1/agents/self/diagnostics', body)).toMatchObject({
      status: 401,
      body: { error: 'invalid_signature' },
    });
  });

  test('DOS-10 after 500 reports of an agent in a day comes 429 with Retry-After; reports are deleted after 30 days', async () => {
    const eager = await organisation.agent({ name: 'eager' });
    const now = Date.now();
    const rows = Array.from({ length: 500 }, (_, i) => ({
      organisation_id: organisation.id,
      id: uuidv7(now - 3_600_000 + i),
      agent_id: eager.id,
      severity: 'info' as const,
      message: 'again',
      code: null,
      platform: null,
      endpoint: null,
      correlation_id: null,
      context: null,
      received_at: now - 3_600_000 + i,
    }));
    await world.db.insertInto('diagnostics').values(rows.slice(1)).execute();
    const say = () => send(eager);
    expect((await say()).status).toBe(201);
    const refused = await say();
    expect([refused.status, refused.body.error, refused.headers.get('retry-after')]).toEqual([
      429,
      'rate_limited',
      '3600',
    ]);
    const child = await childOf(world, organisation, eager);
    expect(await send(child)).toMatchObject({ status: 429, body: { error: 'rate_limited' } });
    expect((await report({ message: 'somebody else’s' })).status).toBe(201);
    await purgeDiagnostics(world.db, now);
    expect((await say()).status).toBe(201);
    const left = (await organisation.ask('GET', `/owner/diagnostics?agent=${eager.agentId}`)).body.diagnostics;
    expect(left).toHaveLength(2);
  });

  test('DOS-10 reports of a child count as its parent’s, even after the child has expired', async () => {
    const parent = await organisation.agent({ name: 'reporting by children' });
    const child = await childOf(world, organisation, parent);
    for (const agent of [parent, child]) expect((await send(agent)).status).toBe(201);
    await organisation.ask('POST', `/owner/agents/${child.agentId}/revoke`, {});
    const familyRoot = { organisationId: organisation.id, id: parent.id };
    expect(await countDiagnostics(world.db, familyRoot, Date.now() - 60_000)).toBe(2);
  });

  test('the hint of every kind of refusal is accepted unchanged as a report', async () => {
    const post = (path: string, body: unknown) => agent.post(path, body);
    const read = { platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' };
    const refusals = [
      await agent.act({ ...read, endpoint: '//x' }),
      await agent.act('{'),
      await agent.act({ ...read, scope: 'demo:nothing' }),
      await agent.act({ ...read, platform: 'nowhere' }),
      await agent.get('/v1/approvals/x'),
      await agent.get(`/v1/approvals/${crypto.randomUUID()}`),
      await post('/v1/access-request', { platform: 'demo', scope: 'demo:nothing' }),
      await post('/v1/access-request', {}),
      await report({}),
    ];
    const hints = refusals.flatMap(({ status, body }) => {
      expect(status).toBeGreaterThanOrEqual(400);
      return body.report_hint ? [body.report_hint] : [];
    });
    expect(hints.length, 'all of them have one').toBe(refusals.length);
    for (const { url, suggested_payload: payload } of hints) {
      expect(url).toBe(`${world.running.baseUrl}/v1/agents/self/diagnostics`);
      expect(refusals.map(({ body }) => body.correlation_id)).toContain(payload.correlation_id);
      await expectStatus(201, report(payload));
    }
  });

  test('another organisation cannot read a report', async () => {
    await report({ message: 'ours alone' });
    const other = await world.organisation();
    expect((await other.ask('GET', '/owner/diagnostics')).body.diagnostics).toEqual([]);
  });

  test.each([
    ['no message', {}, 'message'],
    ['an unknown severity', { message: 'x', severity: 'fatal' }, 'severity'],
    ['a context that is a list', { message: 'x', context: [] }, 'context: must be an object, not array.'],
    ['a malformed correlation id', { message: 'x', correlation_id: 'abc' }, 'correlation_id'],
    ['an endpoint that is no text', { message: 'x', endpoint: 1 }, 'endpoint'],
    ['an endpoint that is too long', { message: 'x', endpoint: '/'.repeat(2049) }, 'endpoint'],
    ['a code that is no text', { message: 'x', code: ['a'] }, 'code'],
    ['a code that is too long', { message: 'x', code: 'c'.repeat(129) }, 'code'],
    ['a platform that is no text', { message: 'x', platform: {} }, 'platform'],
    ['a platform that is too long', { message: 'x', platform: 'p'.repeat(65) }, 'platform'],
    ['an empty message', { message: '' }, 'message'],
    ['a context that is text', { message: 'x', context: '{}' }, 'context'],
    ['a context that is null', { message: 'x', context: null }, 'context'],
    ['an unknown field', { message: 'x', secret: 1 }, 'secret'],
    ['NUL in the message', { message: 'a\u0000b' }, ''],
  ])('%s answers 400 and names the field', async (_what, body, field) => {
    const answer = await expectStatus(400, report(body));
    expect(answer.body.error).toBe('invalid_request');
    expect(answer.body.detail).toContain(field);
  });

  test('4 KiB of message and 16 KiB of context are accepted, a byte more answers 413', async () => {
    expect((await report({ message: 'm'.repeat(4096) })).status).toBe(201);
    expect(await report({ message: 'm'.repeat(4097) })).toMatchObject({
      status: 413,
      body: { error: 'payload_too_large' },
    });
    const fits = 16 * 1024 - JSON.stringify({ c: '' }).length;
    expect((await report({ message: 'x', context: { c: 'c'.repeat(fits) } })).status).toBe(201);
    const large = await expectStatus(413, report({ message: 'x', context: { c: 'c'.repeat(fits + 1) } }));
    expect(large.body.error).toBe('payload_too_large');
  });

  test('a report without a bearer token answers 401', async () => {
    const answer = await fetch(`${world.running.baseUrl}/v1/agents/self/diagnostics`, {
      method: 'POST',
      headers: JSON_BODY,
      body: '{"message":"x"}',
    });
    expect(answer.status).toBe(401);
    expect(await answer.json()).toMatchObject({ error: 'missing_token' });
  });
});
