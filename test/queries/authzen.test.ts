/** AuthZEN: POST /v1/authzen/access (specification), and its standard (OpenID AuthZEN Authorization API 1.0). */
import { describe, expect, test } from 'vitest';
import { newAgentId, uuidv4 } from '../../broker/crypto/ids.ts';
import type { AgentTable } from '../../broker/store/tables/agents.ts';
import { type Answer, expectStatus, jsonPost, send, type TestAgent } from '../world/agent.ts';
import { putChild } from '../world/child.ts';
import { expectProblem } from '../world/problem.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenWorld, type Organisation, shared } from '../world/world.ts';

const PATH = '/v1/authzen/access';

describe.each(ONE_STORE)(`AuthZEN on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent());

  const question = (of: TestAgent | string, scope = 'demo:read', platform = 'demo') => ({
    subject: { type: 'agent', id: typeof of === 'string' ? of : of.id },
    action: { name: scope },
    resource: { type: 'platform', id: platform },
  });
  const post = (by: TestAgent, body: unknown, headers: Record<string, string> = {}, path = PATH): Promise<Answer> =>
    by.request('POST', path, {
      body: typeof body === 'string' ? body : JSON.stringify(body),
      headers: { 'content-type': 'application/json', ...headers },
    });
  const ask = (of: TestAgent, scope?: string, platform?: string) => post(of, question(of, scope, platform));
  const says = async (answer: Promise<Answer>) => {
    const { body } = await expectStatus(200, answer);
    const { decision, context, ...top } = body;
    const { conditional, ...same } = context;
    expect(same, 'what is in the context is at the top').toEqual(top);
    return { decision, ...top, ...(conditional && { conditional }) };
  };

  describe('the answer', () => {
    test('approved', async () => {
      const answer = await ask(agent);
      expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(answer.headers.get('ratelimit-policy')).toMatch(/^"authzen";q=1200000;/);
      expect(answer.headers.get('cache-control')).toBe('no-store');
      expect(answer.body).toEqual({ decision: true, reason: 'approved', context: { reason: 'approved' } });
    });

    const moment = (ms: number) => Date.now() + ms;
    type Made = Parameters<Organisation['agent']>[0];
    test.each<[string, () => Promise<Made> | Made, object]>([
      ['scope_not_granted', () => ({ grants: { demo: { scopeList: ['demo:write'] } } }), {}],
      ['no_permission_record', () => ({ grants: {} }), {}],
      ['grant_expired', () => ({ grants: { demo: { expires_at: moment(-1) } } }), {}],
      ['no_policy_assigned', () => ({ policy: null }), {}],
      ['denied_by_policy', async () => ({ policy: await organisation.policy([{ effect: 'deny' }]) }), {}],
      ['agent_suspended', () => ({ agent: { status: 'suspended' } }), {}],
      ['revoked', () => ({ agent: { status: 'revoked' } }), {}],
      ['revoked', () => ({ agent: { expires_at: moment(-1) } }), {}],
      ['denied', () => ({ agent: { status: 'pending' } }), {}],
      ['denied', () => ({ agent: { status: 'pending_bind' } }), {}],
      ['approval_required_by_grant', () => ({ grants: { demo: { require_approval: 1 } } }), { require_approval: true }],
      [
        'approval_required_by_policy',
        async () => ({ policy: await organisation.policy([{ effect: 'require_approval' }]) }),
        { require_approval: true },
      ],
    ])('%s', async (reason, made, more) => {
      const other = await organisation.agent(await made());
      expect(await says(ask(other))).toEqual({ decision: false, reason, ...more });
      expect(await says(organisation.ask('POST', PATH, question(other)))).toEqual({ decision: false, reason, ...more });
    });

    test('AZ-04 a held scope: decision false, with require_approval', async () => {
      const policy = await organisation.policy([{ effect: 'require_approval' }]);
      const { body } = await ask(await organisation.agent({ policy }));
      const said = { reason: 'approval_required_by_policy', require_approval: true };
      expect(body).toEqual({ decision: false, ...said, context: said });
    });

    test('denied_by_guardrail, approval_required_by_guardrail; a guardrail that suspends does not suspend the agent for a question', async () => {
      const guarded = await world.organisation({
        guardrails: [
          { name: 'a', effect: 'deny', scopes: ['demo:delete'] },
          { name: 'b', effect: 'require_approval', scopes: ['demo:read'] },
          { name: 'c', effect: 'suspend', scopes: ['demo:write'] },
        ],
      });
      await guarded.platform();
      const policy = await guarded.policy([{ effect: 'allow' }]);
      const other = await guarded.agent({ policy });
      expect(await says(ask(other, 'demo:delete'))).toEqual({ decision: false, reason: 'denied_by_guardrail' });
      expect(await says(ask(other))).toEqual({
        decision: false,
        reason: 'approval_required_by_guardrail',
        require_approval: true,
      });
      expect(await says(ask(other, 'demo:write'))).toEqual({ decision: false, reason: 'denied_by_guardrail' });
      expect((await other.get('/v1/agents/me')).body.agent_status).toBe('active');
    });

    test('platform_suspended, until the platform is resumed', async () => {
      const off = await world.organisation();
      await off.platform();
      const other = await off.agent();
      expect((await off.ask('POST', '/owner/platforms/demo/suspend', {})).status).toBe(200);
      expect(await says(ask(other))).toEqual({ decision: false, reason: 'platform_suspended' });
      expect((await off.ask('POST', '/owner/platforms/demo/resume', {})).status).toBe(200);
      expect(await says(ask(other))).toEqual({ decision: true, reason: 'approved' });
    });

    test('circuit_breaker_open, until the breaker is half-open; and the question does not take the trial', async () => {
      const other = await organisation.agent();
      await Promise.all(Array.from({ length: 50 }, (_, number) => other.act({ platform: 'demo', number })));
      expect(await says(ask(other))).toEqual({ decision: false, reason: 'circuit_breaker_open' });
      world.clock.skewMs = 61_000;
      for (let i = 0; i < 2; i++) expect(await says(ask(other))).toEqual({ decision: true, reason: 'approved' });
    });

    test('a scope with a rule that depends on the call is allowed, with conditional: true', async () => {
      const policy = await organisation.policy([
        { effect: 'allow' },
        { effect: 'deny', when: 'request.query.size() > 3' },
      ]);
      const other = await organisation.agent({ policy });
      expect(await says(ask(other))).toEqual({ decision: true, reason: 'approved', conditional: true });
    });

    test('evaluates the grant on the connection that the context names', async () => {
      const second = await organisation.connection('demo', { isDefault: false });
      const other = await organisation.agent({ grants: { demo: { connection_id: second } } });
      const on = (connection_id: string) => post(other, { ...question(other), context: { connection_id } });
      expect(await says(on(second.toUpperCase()))).toEqual({ decision: true, reason: 'approved' });
      expect(await says(on(uuidv4()))).toEqual({ decision: false, reason: 'no_permission_record' });
      expectProblem(await on('second'), 400, 'invalid_request');
    });

    test.each([
      ['*', 'all platforms are none'],
      ['no/such platform', 'what cannot be an id'],
      ['x'.repeat(256), 'a long one'],
      ['démo', 'another alphabet'],
    ])('the platform id %s is unknown (%s)', async (platform) => {
      expect(await says(ask(agent, 'demo:read', platform))).toEqual({
        decision: false,
        reason: 'no_permission_record',
      });
    });

    test('a revocation takes effect on the next question', async () => {
      const other = await organisation.agent();
      expect(await says(ask(other))).toEqual({ decision: true, reason: 'approved' });
      await organisation.ask('POST', `/owner/agents/${other.agentId}/suspend`, {});
      expect(await says(ask(other))).toEqual({ decision: false, reason: 'agent_suspended' });
      await organisation.ask('POST', `/owner/agents/${other.agentId}/resume`, {});
      expect(await says(ask(other))).toEqual({ decision: true, reason: 'approved' });
      await organisation.ask('POST', `/owner/agents/${other.agentId}/revoke`, {});
      expect(await says(ask(other))).toEqual({ decision: false, reason: 'revoked' });
    });
  });

  describe('who may ask about which agent', () => {
    test('an agent may ask about itself, by its uuid in any letter case and by its agent id', async () => {
      for (const id of [agent.id, agent.id.toUpperCase(), agent.agentId])
        expect(await says(post(agent, question(id)))).toEqual({ decision: true, reason: 'approved' });
    });

    test('an owner of any role may ask about every agent of the organisation', async () => {
      const viewer = await organisation.addOwner('viewer');
      for (const id of [agent.id, agent.id.toUpperCase(), agent.agentId])
        expect(await says(organisation.ask('POST', PATH, question(id), viewer))).toMatchObject({ decision: true });
    });

    test('AZ-01 an agent gets the same 401 about any other agent: of the same organisation, of another, or unknown', async () => {
      const foreign = await (await world.organisation()).agent({ grants: {} });
      const same = await organisation.agent();
      const bodies = [];
      for (const id of [same.id, same.agentId, foreign.id, foreign.agentId, uuidv4(), newAgentId()]) {
        const answer = await post(agent, question(id));
        expectProblem(answer, 401, 'not_your_agent');
        expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="agent-broker"');
        bodies.push({ ...answer.body, correlation_id: '' });
      }
      expect(new Set(bodies.map((body) => JSON.stringify(body))).size).toBe(1);
    });

    test('AZ-02 an owner gets the same 401 about an agent of another organisation and about an unknown one', async () => {
      const foreign = await (await world.organisation()).agent({ grants: {} });
      const bodies = [];
      for (const id of [foreign.id, foreign.agentId, uuidv4(), newAgentId()]) {
        const answer = await organisation.ask('POST', PATH, question(id));
        expectProblem(answer, 401, 'not_your_agent');
        bodies.push({ ...answer.body, correlation_id: '' });
      }
      expect(new Set(bodies.map((body) => JSON.stringify(body))).size).toBe(1);
    });

    test('a missing or invalid token is a 401', async () => {
      const without = await send(world.running.baseUrl + PATH, jsonPost(question(agent)));
      expectProblem(without, 401, 'missing_token');
      expect(without.headers.get('www-authenticate')).toBe('Bearer realm="agent-broker"');
      const token = agent.token({ exp: Math.floor(Date.now() / 1000) - 100, iat: Math.floor(Date.now() / 1000) - 160 });
      expectProblem(await post(agent, question(agent), { authorization: `Bearer ${token}` }), 401, 'token_expired');
      const other = await organisation.agent();
      const forged = agent.token({ agent_id: other.agentId });
      expectProblem(
        await post(agent, question(other), { authorization: `Bearer ${forged}` }),
        401,
        'invalid_signature',
      );
    });

    test('a deleted agent cannot ask, and its owner gets the reason revoked', async () => {
      const other = await organisation.agent({ agent: { status: 'deleted' } });
      expectProblem(await ask(other), 401, 'invalid_signature');
      expect(await says(organisation.ask('POST', PATH, question(other)))).toEqual({
        decision: false,
        reason: 'revoked',
      });
    });
  });

  describe('an invalid question', () => {
    const { subject, action, resource } = question('agt_aaaaaaaaaaaaaaaaaaaa');
    test.each<[string, unknown, RegExp]>([
      ['no subject', { action, resource }, /^subject: is missing/],
      ['no action', { subject, resource }, /^action: is missing/],
      ['no resource', { subject, action }, /^resource: is missing/],
      ['a subject that is a string', { subject: 'agt', action, resource }, /^subject: must be an object/],
      ['a subject without type', { subject: { id: subject.id }, action, resource }, /^subject\.type: is missing/],
      ['a subject without id', { subject: { type: 'agent' }, action, resource }, /^subject\.id: is missing/],
      [
        'an id that is not an agent id',
        { subject: { type: 'user', id: 'alice' }, action, resource },
        /^subject\.id: must be/,
      ],
      ['an action without name', { subject, action: {}, resource }, /^action\.name: is missing/],
      ['a name that is a number', { subject, action: { name: 123 }, resource }, /^action\.name: must be a string/],
      ['a resource without type', { subject, action, resource: { id: 'demo' } }, /^resource\.type: is missing/],
      ['a resource without id', { subject, action, resource: { type: 'platform' } }, /^resource\.id: is missing/],
      ['properties that are a list', { subject: { ...subject, properties: [] }, action, resource }, /properties/],
      ['a context that is a string', { subject, action, resource, context: 'now' }, /^context: must be an object/],
      ['a list', [], /^body: must be an object/],
      ['not JSON', '{"subject":', /^offset 11: /],
      ['a duplicate member name', `{"subject":{},"subject":{}}`, /subject/],
      ['an empty body', '', /JSON body/],
      ['NUL in a string', { subject, action: { name: 'a\0' }, resource }, /u0000/],
      ['a scope of 257 characters', { subject, action: { name: 'x'.repeat(257) }, resource }, /256/],
      [
        'a batch at the endpoint for one evaluation',
        { subject, action, resource, evaluations: [{}] },
        /\/access\/v1\/evaluations/,
      ],
    ])('%s: 400 with the reason', async (_what, body, detail) => {
      const answer = await post(agent, body);
      expectProblem(answer, 400, 'invalid_request');
      expect(answer.body.detail).toMatch(detail);
    });

    test('a content type that is not JSON: 400', async () => {
      for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/xml'])
        expectProblem(await post(agent, question(agent), { 'content-type': type }), 400, 'invalid_request');
      await expectStatus(200, post(agent, question(agent), { 'content-type': 'application/json; charset=utf-8' }));
    });

    test('a body may have 256 KiB, and not a byte more', async () => {
      const whole = question(agent);
      const filled = (bytes: number) => {
        const properties = { filling: '' };
        const empty = JSON.stringify({ ...whole, action: { ...whole.action, properties } }).length;
        properties.filling = 'x'.repeat(bytes - empty);
        return JSON.stringify({ ...whole, action: { ...whole.action, properties } });
      };
      expect((await post(agent, filled(256 * 1024))).status).toBe(200);
      const answer = await post(agent, filled(256 * 1024 + 1), { 'x-request-id': 'too-large' });
      expectProblem(answer, 413, 'payload_too_large');
      expect(answer.headers.get('x-request-id')).toBe('too-large');
    });

    test('another method: 405 in the same form', async () => {
      const answer = await send(world.running.baseUrl + PATH, {});
      expectProblem(answer, 405, 'method_not_allowed');
      expect(answer.headers.get('allow')).toBe('POST');
    });
  });

  test('X-Request-ID is returned unchanged, with an answer and with a refusal; a malformed one is not', async () => {
    const id = `bfe9eb29-ab87 / "4ca3"; ${'x'.repeat(4_000)}`;
    for (const body of [question(agent), {}, question(uuidv4())])
      expect((await post(agent, body, { 'x-request-id': id })).headers.get('x-request-id')).toBe(id);
    expect((await ask(agent)).headers.get('x-request-id')).toBeNull();
    const other = await post(agent, question(agent), { 'x-request-id': 'é' });
    expect([other.status, other.headers.get('x-request-id')]).toEqual([200, null]);
  });

  test('unknown members and properties are ignored', async () => {
    const whole = question(agent);
    const more = {
      subject: { ...whole.subject, type: 'identity', properties: { department: 'Sales' }, future: 1 },
      action: { ...whole.action, properties: { method: 'GET' } },
      resource: { ...whole.resource, type: 'service', properties: { status: 'active' } },
      context: { time: '1985-10-26T01:22-07:00', nested: { deep: [1] } },
      foo: 'bar',
      futureField: { nested: true },
      evaluations: [],
    };
    expect(await says(post(agent, more))).toEqual({ decision: true, reason: 'approved' });
  });

  test('a question is not recorded in the audit', async () => {
    const count = async () => (await world.db.selectFrom('audit_rows').select('id').execute()).length;
    const before = await count();
    await ask(agent);
    await ask(await organisation.agent({ grants: {} }));
    expect(await count()).toBe(before);
  });

  test('the metadata names these routes, and is readable by pages of any site', async () => {
    const answer = await send(`${world.running.baseUrl}/.well-known/authzen-configuration`, {});
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
    expect(answer.body).toEqual({
      policy_decision_point: world.running.baseUrl,
      access_evaluation_endpoint: world.running.baseUrl + PATH,
      access_evaluations_endpoint: `${world.running.baseUrl}/access/v1/evaluations`,
    });
    for (const path of [answer.body.access_evaluation_endpoint, '/access/v1/evaluation'])
      expect(await says(post(agent, question(agent), {}, path.replace(world.running.baseUrl, '')))).toMatchObject({
        decision: true,
      });
  });

  describe('children', () => {
    const child = (parent: TestAgent, row: Partial<AgentTable> = {}) =>
      putChild(world, organisation, parent, { agent: row });
    const move = (of: TestAgent, verb: string) => organisation.ask('POST', `/owner/agents/${of.agentId}/${verb}`, {});

    test('CH-11 have at most what their parent has now', async () => {
      const parent = await organisation.agent({ grants: { demo: { scopeList: ['demo:read'] } } });
      const other = await child(parent);
      expect(await says(ask(other))).toEqual({ decision: true, reason: 'approved' });
      expect(await says(ask(other, 'demo:delete'))).toEqual({ decision: false, reason: 'scope_not_granted' });
      await move(parent, 'suspend');
      expect(await says(ask(other))).toEqual({ decision: false, reason: 'agent_suspended' });
      await move(parent, 'resume');
      expect(await says(ask(other))).toEqual({ decision: true, reason: 'approved' });
      await world.db
        .updateTable('grants')
        .set({ expires_at: Date.now() - 1 })
        .where('agent_id', '=', parent.id)
        .execute();
      expect(await says(ask(other))).toEqual({ decision: false, reason: 'grant_expired' });
      await move(parent, 'revoke');
      expect(await says(ask(other))).toMatchObject({ decision: false, reason: 'grant_expired' });
    });

    test('are refused when their parent is revoked or expired', async () => {
      const parent = await organisation.agent({ agent: { expires_at: Date.now() + 60_000 } });
      const other = await child(parent);
      expect(await says(ask(other))).toEqual({ decision: true, reason: 'approved' });
      world.clock.skewMs = 61_000;
      expect(await says(ask(other))).toEqual({ decision: false, reason: 'revoked' });
      world.clock.skewMs = 0;
      await move(parent, 'revoke');
      expect(await says(ask(other))).toEqual({ decision: false, reason: 'revoked' });
    });

    test('are refused when their own lifetime ends', async () => {
      const other = await child(await organisation.agent(), { expires_at: Date.now() + 60_000 });
      expect(await says(ask(other))).toEqual({ decision: true, reason: 'approved' });
      world.clock.skewMs = 61_000;
      expect(await says(ask(other))).toEqual({ decision: false, reason: 'revoked' });
    });
  });
});
