/** POST /v1/access-request and its status, for agents (specification, Approvals and access requests). */
import { request as httpRequest } from 'node:http';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { expireRequests } from '../../broker/approvals/access-requests.ts';
import { mintToken } from '../../broker/crypto/one-time-token.ts';
import { strike } from '../../broker/store/breakers.ts';
import type { BreakerTable } from '../../broker/store/tables/agents.ts';
import { type Answer, expectStatus, send, type TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { evidenceOf, expectEnvelope, expectReportHint } from '../world/evidence.ts';
import { sized } from '../world/runner/thorough.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { DAY_MS } from '../world/times.ts';
import { ALLOW_ALL, givenWorld, type Organisation, shared, startWorld } from '../world/world.ts';

const WRITE = { platform: 'demo', endpoint: '/items/1', method: 'PATCH', scope: 'demo:write', data: { title: 'x' } };
const READ_ONLY = { demo: { scopeList: ['demo:read'] } };
/** A platform of many scopes: `many:0`, `many:1` … */
const MANY = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`many:${i}`, [`GET /${i}`]]));

describe.each(ONE_STORE)(`access requests on %s${postgresNote}`, (store) => {
  let policy: string;
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  beforeAll(async () => {
    await organisation.platform({ id: 'many', manifest: { scopes: MANY } });
    policy = await organisation.policy(ALLOW_ALL);
  });

  const newAgent = (grants: Parameters<Organisation['agent']>[0] = {}) =>
    organisation.agent({ policy, grants: READ_ONLY, ...grants });
  const ask = (agent: TestAgent, body: unknown): Promise<Answer> => agent.post('/v1/access-request', body);
  const askForWrite = (agent: TestAgent) => ask(agent, { platform: 'demo', scope: 'demo:write' });
  const listed = async (query = '') => (await organisation.ask('GET', `/owner/access-requests${query}`)).body;
  const idOf = async (agent: TestAgent): Promise<string> =>
    (await listed()).access_requests.find((one: { agent: { id: string } }) => one.agent.id === agent.id).request_id;
  const decide = (id: string, verb: 'approve' | 'deny', body: unknown = {}) =>
    organisation.ask('POST', `/owner/access-requests/${id}/${verb}`, body);
  const seconds = async <T>(work: Promise<T>): Promise<[number, T]> => {
    const began = performance.now();
    const value = await work;
    return [(performance.now() - began) / 1000, value];
  };

  test('after a refusal the agent requests access, an owner approves, and the next call passes', async () => {
    const agent = await newAgent();
    const refused = await agent.act(WRITE);
    expect([refused.status, refused.body.reason]).toEqual([403, 'scope_not_granted']);
    expect(refused.body._meta.next_actions).toContainEqual({
      capability: 'access_requests.create',
      endpoint: '/v1/access-request',
    });
    const asked = await ask(agent, { platform: 'demo', scope: 'demo:write', reason: 'to rename items' });
    expect(asked.status, asked.text).toBe(202);
    expect(asked.body).toEqual({
      status: 'pending_approval',
      request_token: expect.stringMatching(/^req_[\w-]{43}$/),
      poll_url: `/v1/access-request/status/${asked.body.request_token}`,
      reason_code: 'not_granted',
      message: expect.stringContaining('demo:write on demo'),
    });
    const again = await expectStatus(200, ask(agent, { platform: 'demo', scope: 'demo:write', reason: 'other words' }));
    expect({ ...again.body, message: '' }).toEqual({ ...asked.body, message: '' });
    expect((await agent.get(asked.body.poll_url)).body).toEqual({ status: 'pending' });
    const waiting = agent.get(`${asked.body.poll_url}?wait=30`);
    const approved = await expectStatus(200, decide(await idOf(agent), 'approve', { note: 'Rename, do not delete.' }));
    expect((await waiting).body).toEqual({ status: 'approved', note: 'Rename, do not delete.' });
    expect((await agent.act(WRITE)).status).toBe(200);
    const { payload, row } = await evidenceOf(world, agent, approved.body.audit_id);
    expect(payload).toMatchObject({
      kind: 'event',
      reason: 'access_request_approved',
      platform: 'demo',
      scope: 'demo:write',
      result: null,
      change: {
        by: organisation.owner.id,
        how: 'api',
        access_request: approved.body.request_id,
        granted: ['demo:write'],
        before: { scopes: ['demo:read'] },
        after: { scopes: ['demo:read', 'demo:write'] },
      },
    });
    expect(row.detail).toBe('Rename, do not delete.');
    expect(JSON.stringify(payload)).not.toContain('Rename');
    // Access that exists cannot be requested again.
    expectEnvelope(await askForWrite(agent), 409, 'conflict');
  });

  test.each<[string, unknown[] | null, boolean]>([
    ['no policy', null, true],
    ['a policy without a matching rule', [{ effect: 'allow', scopes: ['demo:read'] }], true],
    ['a policy that denies it', [{ effect: 'allow' }, { effect: 'deny', scopes: ['demo:write'] }], false],
  ])('a refused call suggests an access request only where one can help: %s', async (_what, rules, named) => {
    const agent = await newAgent({ policy: rules === null ? null : await organisation.policy(rules) });
    const refused = await expectStatus(403, agent.act(WRITE));
    const capabilities = refused.body._meta.next_actions.map((one: { capability: string }) => one.capability);
    expect(capabilities.includes('access_requests.create')).toBe(named);
    expect((await askForWrite(agent)).status).toBe(named ? 202 : 403);
  });

  test('the agent reads the reason of a denial; repeating the request creates a new one', async () => {
    const agent = await newAgent();
    const { poll_url } = (await askForWrite(agent)).body;
    const denied = await decide(await idOf(agent), 'deny', { note: 'Read is enough.' });
    expect(denied.body).toMatchObject({ status: 'denied', note: 'Read is enough.', granted: null });
    expect(denied.body.next_steps).toBeUndefined();
    expect((await agent.get(`${poll_url}?wait=30`)).body).toEqual({ status: 'denied', note: 'Read is enough.' });
    expect((await agent.act(WRITE)).body.reason).toBe('scope_not_granted');
    const { payload } = await evidenceOf(world, agent, denied.body.audit_id);
    expect(payload).toMatchObject({ reason: 'access_request_denied', change: { by: organisation.owner.id } });
    expect(payload.change.after).toBeUndefined();
    const again = await expectStatus(202, askForWrite(agent));
    expect(again.body.poll_url).not.toBe(poll_url);
  });

  describe('reasons for a request, and refusals that no owner could grant', () => {
    const NEEDS = { needs: { 'demo:write': ['items.write'] } };
    const DENY = [{ effect: 'allow' }, { effect: 'deny', scopes: ['demo:write'] }];
    type Place = { organisation: Organisation; platform: string };
    type Made = { policy?: unknown[] | null; grant?: { scopeList?: string[]; expires_at?: number } | null };
    const here = async (id: string, options: Parameters<Organisation['platform']>[0] = {}): Promise<Place> => {
      await organisation.platform({ id, ...options });
      return { organisation, platform: id };
    };
    const connectedWith = async (id: string, upstreamScopes: string[]): Promise<Place> => {
      const place = await here(id, { manifest: NEEDS, secret: null });
      await organisation.connection(id, { upstreamScopes });
      return place;
    };
    const emptied = async (id: string): Promise<Place> => {
      const place = await here(id, { secret: null });
      await organisation.connection(id, { secret: null });
      return place;
    };
    /** Two connections, neither of which is the default. */
    const connectedTwice = async (id: string, secret: { secret?: null } = {}): Promise<Place> => {
      const place = await here(id, { secret: null });
      for (let i = 0; i < 2; i++) await organisation.connection(id, { isDefault: false, ...secret });
      return place;
    };
    /** The platform answered a call with 401. */
    const refusedAt = async (id: string): Promise<Place> => {
      const place = await here(id);
      const agent = await newAgent({ grants: { [id]: BOTH } });
      world.upstream.answer = (_request, response) => void response.writeHead(401).end();
      const refused = await agent.act({ ...WRITE, platform: id });
      world.upstream.answer = undefined;
      expect([refused.status, refused.body.error]).toEqual([409, 'platform_reauth_needed']);
      return place;
    };
    const BOTH = { scopeList: ['demo:read', 'demo:write'] };
    const READ = { scopeList: ['demo:read'] };
    type Row = [what: string, place: () => Promise<Place>, made: Made, scope: string | null, answer: string];

    test.each<Row>([
      ['a scope that the grant lacks', () => here('a1'), { grant: READ }, 'demo:write', 'not_granted'],
      ['a scope, without a grant', () => here('a2'), { grant: null }, 'demo:write', 'not_granted'],
      ['the platform, without a grant', () => here('a3'), { grant: null }, null, 'not_granted'],
      [
        'a scope, with an expired grant',
        () => here('a4'),
        { grant: { ...BOTH, expires_at: 1 } },
        'demo:write',
        'grant_expired',
      ],
      [
        'the platform, with an expired grant',
        () => here('a5'),
        { grant: { ...BOTH, expires_at: 1 } },
        null,
        'grant_expired',
      ],
      [
        'a granted scope, without a connection',
        () => here('a6', { secret: null }),
        { grant: BOTH },
        'demo:write',
        'not_connected',
      ],
      [
        'a granted scope, with a connection without a credential',
        () => emptied('a7'),
        { grant: BOTH },
        'demo:write',
        'not_connected',
      ],
      [
        'the platform, without a connection',
        () => here('a8', { secret: null }),
        { grant: null },
        null,
        'not_connected',
      ],
      [
        'a granted scope, with too little consent',
        () => connectedWith('a9', ['items.read']),
        { grant: BOTH },
        'demo:write',
        'needs_consent',
      ],
      [
        'a granted scope without a matching rule in the policy',
        () => here('b1'),
        { grant: BOTH, policy: [{ effect: 'allow', scopes: ['demo:read'] }] },
        'demo:write',
        'scope_denied',
      ],
      [
        'a granted scope for which the policy only denies some calls',
        () => here('b4'),
        {
          grant: BOTH,
          policy: [
            { effect: 'allow', scopes: ['demo:read'] },
            { effect: 'deny', when: 'has(request.body.amount) && request.body.amount > 1000' },
            { effect: 'deny', endpoints: ['/admin/**'] },
          ],
        },
        'demo:write',
        'scope_denied',
      ],
      [
        'a granted scope, without a policy',
        () => here('b2'),
        { grant: BOTH, policy: null },
        'demo:write',
        'scope_denied',
      ],
      ['the platform, without a policy', () => here('b3'), { grant: null, policy: null }, null, 'scope_denied'],
      [
        'a scope, without a grant and a connection',
        () => here('c1', { secret: null }),
        { grant: null },
        'demo:write',
        'not_connected',
      ],
      [
        'a scope, without a grant, where no connection is the default',
        () => connectedTwice('e1'),
        { grant: null },
        'demo:write',
        'not_granted',
      ],
      [
        'the platform, without a grant, where no connection is the default',
        () => connectedTwice('e2'),
        { grant: null },
        null,
        'not_granted',
      ],
      [
        'a scope, without a grant, where no connection has a credential',
        () => connectedTwice('e3', { secret: null }),
        { grant: null },
        'demo:write',
        'not_connected',
      ],
      [
        'a granted scope, with a credential that the platform refused',
        () => refusedAt('c6'),
        { grant: BOTH },
        'demo:write',
        'not_connected',
      ],
      [
        'the platform, with a credential that it refused',
        () => refusedAt('c7'),
        { grant: READ },
        null,
        'not_connected',
      ],
      [
        'a scope that the grant lacks, with a credential that the platform refused',
        () => refusedAt('c8'),
        { grant: READ },
        'demo:write',
        'not_granted',
      ],
      ['a scope that the platform does not have', () => here('c2'), { grant: READ }, 'demo:wirte', '403'],
      ['a scope that a policy denies', () => here('c3'), { grant: READ, policy: DENY }, 'demo:write', '403'],
      ['a granted scope that a policy denies', () => here('c4'), { grant: BOTH, policy: DENY }, 'demo:write', '403'],
      [
        'the platform, when a policy denies all of it',
        () => here('c5'),
        { grant: null, policy: [{ effect: 'deny' }] },
        null,
        '403',
      ],
      ['a granted scope, connected', () => here('d1'), { grant: BOTH }, 'demo:write', '409'],
      [
        'a granted scope whose calls are held',
        () => here('d2'),
        { grant: BOTH, policy: [{ effect: 'require_approval' }] },
        'demo:write',
        '409',
      ],
      [
        'a granted scope, with sufficient consent',
        () => connectedWith('d3', ['items.write']),
        { grant: BOTH },
        'demo:write',
        '409',
      ],
      ['the platform, with a usable scope', () => here('d4'), { grant: READ }, null, '409'],
    ])('%s', async (_what, place, made, scope, expected) => {
      const { platform } = await place();
      const rules = made.policy === undefined ? ALLOW_ALL : made.policy;
      const agent = await organisation.agent({
        policy: rules === null ? null : await organisation.policy(rules),
        grants: made.grant ? { [platform]: made.grant } : {},
      });
      const answer = await ask(agent, { platform, ...(scope !== null && { scope }) });
      if (expected === '403') expectEnvelope(answer, 403, 'scope_not_grantable');
      else if (expected === '409') expectEnvelope(answer, 409, 'conflict');
      else expect([answer.status, answer.body.reason_code], answer.text).toEqual([202, expected]);
    });

    test('the detail of a refusal says what to do', async () => {
      const agent = await newAgent();
      const slip = await ask(agent, { platform: 'demo', scope: 'demo:wirte' });
      expect(slip.body.detail).toBe(
        'No owner can grant this: demo has no scope "demo:wirte". Did you mean "demo:write"?',
      );
      expectReportHint(slip, 'scope_not_grantable');
      expect((await ask(agent, {})).body.detail).toBe('platform: is missing: send a string.');
      expect((await ask(agent, { platform: ['demo'] })).body.detail).toBe('platform: must be a string, not array.');
      const usable = await ask(agent, { platform: 'demo', scope: 'demo:read' });
      expect(usable.body.detail).toBe('No access request is needed: every check passed. Make the call.');
      const nothing = await agent.request('POST', '/v1/access-request', {
        body: '',
        headers: { 'content-type': 'application/json' },
      });
      expect(nothing.body.detail).toBe('Send a JSON body with the header "Content-Type: application/json".');
      const whole = await ask(agent, { platform: 'demo' });
      expect(whole.body.detail).toBe(
        'No access request is needed: the agent can already use demo:read on this platform. Name the scope that it needs.',
      );
    });

    test('access that a guardrail denies unconditionally cannot be requested', async () => {
      const strict = await world.organisation({
        guardrails: [{ name: 'never', effect: 'deny', scopes: ['demo:delete'] }],
      });
      await strict.platform();
      const agent = await strict.agent({ rules: ALLOW_ALL, grants: READ_ONLY });
      const answer = await ask(agent, { platform: 'demo', scope: 'demo:delete' });
      expectEnvelope(answer, 403, 'scope_not_grantable');
      expect(answer.body.detail).toContain('never');
      expect((await askForWrite(agent)).status).toBe(202);
    });

    test('access to a suspended platform cannot be requested', async () => {
      const { platform } = await here('e1');
      await world.db.updateTable('platforms').set({ suspended: 1 }).where('platform_id', '=', platform).execute();
      const agent = await newAgent({ grants: {} });
      expectEnvelope(await ask(agent, { platform, scope: 'demo:write' }), 403, 'scope_not_grantable');
    });

    test('a child cannot request what its parent lacks', async () => {
      const parent = await newAgent();
      const child = await childOf(world, organisation, parent);
      await world.db.updateTable('grants').set({ scopes: '[]' }).where('agent_id', '=', child.id).execute();
      expectEnvelope(await askForWrite(child), 403, 'scope_not_grantable');
      expect((await ask(child, { platform: 'demo', scope: 'demo:read' })).status).toBe(202);
      // The parent is not affected, and has no pending request.
      expectEnvelope(await ask(parent, { platform: 'demo', scope: 'demo:read' }), 409, 'conflict');
    });
  });

  const openBreaker = (agent: TestAgent, cause: BreakerTable['cause'], key: string) =>
    strike(
      world.db,
      { organisation_id: organisation.id, agent_id: agent.id, cause, key },
      { strikes: 1, windowMs: 60_000, openMs: 60_000 },
      Date.now(),
    );

  test('an open breaker of one platform does not prevent an access request', async () => {
    await organisation.platform({ id: 'healthy' });
    const agent = await newAgent({ grants: { demo: { scopeList: ['demo:read'] }, healthy: {} } });
    await openBreaker(agent, 'breaker_upstream_failure', 'demo');
    expect((await agent.act(WRITE)).body.reason).toBe('circuit_breaker_open');
    expect((await askForWrite(agent)).body.reason_code).toBe('not_granted');
    await world.forgive();
  });

  test.each<[string, unknown]>([
    ['no body', undefined],
    ['a body that is not an object', []],
    ['no platform', { scope: 'demo:write' }],
    ['an empty platform', { platform: '' }],
    ['a platform that is not a string', { platform: 1 }],
    ['a platform of 65 characters', { platform: 'x'.repeat(65) }],
    ['an empty scope', { platform: 'demo', scope: '' }],
    ['a scope that is null', { platform: 'demo', scope: null }],
    ['a scope that is too long', { platform: 'demo', scope: 'x'.repeat(257) }],
    ['an unknown member', { platform: 'demo', scopes: ['demo:write'] }],
    ['a reason of more than 2,048 characters', { platform: 'demo', scope: 'demo:write', reason: 'ä'.repeat(2049) }],
    ['NUL in the reason', { platform: 'demo', scope: 'demo:write', reason: '\0' }],
    ['NUL in the platform', { platform: 'de\0mo' }],
    ['a lone surrogate', { platform: 'demo', scope: 'demo:write', reason: '\ud800' }],
  ])('400: %s', async (_what, body) => {
    const agent = await newAgent();
    expectEnvelope(await ask(agent, body), 400, 'invalid_request');
    expect((await listed()).access_requests.some((one: { agent: { id: string } }) => one.agent.id === agent.id)).toBe(
      false,
    );
  });

  test('a reason of 2,048 characters is accepted, and shown to owners unchanged', async () => {
    const agent = await newAgent();
    const reason = `${'🔑'.repeat(2043)}<b>"\u202e`;
    expect((await ask(agent, { platform: 'demo', scope: 'demo:write', reason })).status).toBe(202);
    const shown = await organisation.ask('GET', `/owner/access-requests/${await idOf(agent)}`);
    expect(shown.body.reason).toBe(reason);
  });

  test('404: a platform that the organisation does not have, even if another one has it', async () => {
    const other = await world.organisation();
    await other.platform({ id: 'theirs' });
    const agent = await newAgent();
    for (const platform of ['theirs', 'nowhere', '*', 'DEMO', 'demo ', '__proto__'])
      expectEnvelope(await ask(agent, { platform, scope: 'demo:write' }), 404, 'not_found');
  });

  test('401 without the agent’s own token', async () => {
    const agent = await newAgent();
    const { poll_url } = (await askForWrite(agent)).body;
    const post = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"platform":"demo"}' };
    expectEnvelope(await send(`${agent.baseUrl}/v1/access-request`, post), 401, 'missing_token');
    expectEnvelope(await send(agent.baseUrl + poll_url, {}), 401, 'missing_token');
    expectEnvelope(await organisation.ask('GET', poll_url), 401, 'invalid_token');
    expectEnvelope(await agent.get(poll_url, { authorization: 'Bearer x' }), 401, 'invalid_token');
  });

  test.each([
    ['suspend', 'suspended', 'pending'],
    ['revoke', 'revoked', 'expired'],
  ])(
    '403 after %s: the agent cannot request access, but can read the status of earlier requests',
    async (verb, state, became) => {
      const agent = await newAgent();
      const { poll_url } = (await askForWrite(agent)).body;
      await organisation.ask('POST', `/owner/agents/${agent.id}/${verb}`, { reason: 'odd' });
      for (const body of [{ platform: 'demo', scope: 'demo:delete' }, { platform: 'demo', scope: 'demo:write' }, {}]) {
        const answer = await ask(agent, body);
        expectEnvelope(answer, 403, 'agent_halted');
        expect(answer.body.halt).toMatchObject({ state, detail: 'odd' });
        expect(answer.body.detail).toBe(answer.body.halt.instructions);
      }
      expect((await agent.get(poll_url)).body).toEqual({ status: became });
    },
  );

  test('403 while a breaker halts the agent, although its status is active', async () => {
    const agent = await newAgent();
    await openBreaker(agent, 'breaker_api_error', '');
    const answer = await askForWrite(agent);
    expect([answer.status, answer.body.error, answer.body.reason]).toEqual([
      403,
      'agent_halted',
      'circuit_breaker_open',
    ]);
    expect(answer.headers.get('retry-after')).toBe(String(answer.body.halt.retry_after_seconds));
  });

  test.each(['pending', 'pending_bind'] as const)('409: an agent that is %s', async (status) => {
    const agent = await newAgent({ agent: { status } });
    expectEnvelope(await askForWrite(agent), 409, 'agent_inactive');
  });

  test('a request can be read by its own agent only: 403 to another agent of the organisation, 404 to another organisation', async () => {
    const agent = await newAgent();
    const neighbour = await newAgent();
    const other = await world.organisation();
    const stranger = await other.agent({ grants: {} });
    const { poll_url } = (await askForWrite(agent)).body;
    for (const query of ['', '?wait=1']) {
      expectEnvelope(await neighbour.get(poll_url + query), 403, 'forbidden');
      expectEnvelope(await stranger.get(poll_url + query), 404, 'not_found');
    }
    const unknown = mintToken('access_request').token.reveal();
    for (const token of [unknown, `${unknown}x`, unknown.slice(1), 'x', '%00', 'req_%00', await idOf(agent)])
      expectEnvelope(await agent.get(`/v1/access-request/status/${token}`), 404, 'not_found');
  });

  const AT_ONCE = sized(12, 50);
  test(`${AT_ONCE} concurrent identical requests create one access request`, async () => {
    const agent = await newAgent();
    const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => askForWrite(agent)));
    expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([...Array(AT_ONCE - 1).fill(200), 202]);
    expect(new Set(answers.map(({ body }) => body.request_token)).size).toBe(1);
    const { access_requests } = await listed('?limit=200');
    expect(access_requests.filter((one: { agent: { id: string } }) => one.agent.id === agent.id)).toHaveLength(1);
  });

  test('DOS-10 of 40 concurrent requests 20 are opened, the others get 429; decided requests free their slots', async () => {
    const agent = await newAgent({ grants: {} });
    const answers = await Promise.all(Object.keys(MANY).map((scope) => ask(agent, { platform: 'many', scope })));
    const refused = answers.filter(({ status }) => status === 429);
    expect(answers.filter(({ status }) => status === 202)).toHaveLength(20);
    expect(refused).toHaveLength(20);
    for (const answer of refused) {
      expectEnvelope(answer, 429, 'too_many_open_requests');
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    }
    // A pending request is still returned, and other agents are not affected.
    const open = Object.keys(MANY)[answers.findIndex(({ status }) => status === 202)];
    expect((await ask(agent, { platform: 'many', scope: open })).status).toBe(200);
    expect((await askForWrite(await newAgent())).status).toBe(202);
    const closed = Object.keys(MANY)[answers.findIndex(({ status }) => status === 429)];
    await decide(await idOf(agent), 'deny');
    expect((await ask(agent, { platform: 'many', scope: closed })).status).toBe(202);
    // An expired request frees its slot, too, even before the sweep has marked it.
    world.clock.skewMs = DAY_MS + 1_000;
    expect((await askForWrite(agent)).status).toBe(202);
  });

  test('a request that nobody decides in time expires, cannot be decided, and can be repeated', async () => {
    const agent = await newAgent();
    const { poll_url, request_token } = (await askForWrite(agent)).body;
    const id = await idOf(agent);
    world.clock.skewMs = DAY_MS - 5_000;
    expect((await agent.get(poll_url)).body.status).toBe('pending');
    world.clock.skewMs = DAY_MS + 1_000;
    expect((await agent.get(`${poll_url}?wait=30`)).body).toEqual({ status: 'expired' });
    for (const verb of ['approve', 'deny'] as const) expectEnvelope(await decide(id, verb), 410, 'request_expired');
    expect(
      (await listed('?status=expired')).access_requests.map((one: { request_id: string }) => one.request_id),
    ).toContain(id);
    expect(
      (await listed('?status=pending')).access_requests.map((one: { request_id: string }) => one.request_id),
    ).not.toContain(id);
    const again = await expectStatus(202, askForWrite(agent));
    expect(again.body.request_token).not.toBe(request_token);
    expect((await agent.act(WRITE)).body.reason).toBe('scope_not_granted');
  });

  test('the sweep marks expired requests and announces the change', async () => {
    const agent = await newAgent();
    await askForWrite(agent);
    const id = await idOf(agent);
    const { broker, services } = world.running;
    const heard: string[] = [];
    const stop = services.changes.subscribe((ref) => heard.push(ref.id));
    await expireRequests(broker, services.changes, broker.clock());
    expect(heard).not.toContain(id);
    world.clock.skewMs = DAY_MS + 1_000;
    await expireRequests(broker, services.changes, broker.clock());
    stop();
    expect(heard).toContain(id);
    const row = await broker.store.db
      .selectFrom('access_requests')
      .select('status')
      .where('id', '=', id)
      .executeTakeFirst();
    expect(row?.status).toBe('expired');
  });

  describe('waiting for a decision', () => {
    const waiters = (id: string) => world.running.services.changes.waiting(id);
    const isWaiting = (id: string) => vi.waitUntil(() => waiters(id) > 0, { timeout: 10_000, interval: 2 });

    test.each(['approve', 'deny'] as const)('%s answers a waiting agent', async (verb) => {
      const agent = await newAgent();
      const { poll_url } = (await askForWrite(agent)).body;
      const id = await idOf(agent);
      const waiting = seconds(agent.get(`${poll_url}?wait=40`));
      await isWaiting(id);
      await decide(id, verb);
      const [took, { body }] = await waiting;
      expect(body.status).toBe(verb === 'approve' ? 'approved' : 'denied');
      expect(took).toBeLessThan(20);
      expect(waiters(id)).toBe(0);
    });

    test('without a decision the answer after the wait is pending', async () => {
      const agent = await newAgent();
      const { poll_url } = (await askForWrite(agent)).body;
      const [took, { body }] = await seconds(agent.get(`${poll_url}?wait=1`));
      expect(body).toEqual({ status: 'pending' });
      expect(took).toBeGreaterThan(0.9);
      for (const wrong of ['-1', '1.5', 'x', ''])
        expectEnvelope(await agent.get(`${poll_url}?wait=${wrong}`), 400, 'invalid_request');
    });

    test('a request may expire during the wait', async () => {
      const agent = await newAgent();
      const { poll_url } = (await askForWrite(agent)).body;
      const id = await idOf(agent);
      await world.db
        .updateTable('access_requests')
        .set({ expires_at: Date.now() + 700 })
        .where('id', '=', id)
        .execute();
      const [took, { body }] = await seconds(agent.get(`${poll_url}?wait=40`));
      expect(body).toEqual({ status: 'expired' });
      expect(took).toBeLessThan(20);
    });

    test('a wait ends when the agent disconnects', async () => {
      const agent = await newAgent();
      const { poll_url } = (await askForWrite(agent)).body;
      const id = await idOf(agent);
      const asking = httpRequest(`${agent.baseUrl}${poll_url}?wait=50`, {
        headers: { authorization: `Bearer ${agent.token()}` },
      });
      asking.on('error', () => {});
      asking.end();
      await isWaiting(id);
      asking.destroy();
      await vi.waitUntil(() => waiters(id) === 0, { timeout: 10_000 });
    });

    test('owners’ event streams report a new request and its decision', async () => {
      const heard: string[] = [];
      const stop = world.running.services.changes.subscribe((ref) => heard.push(`${ref.organisation_id} ${ref.id}`));
      const agent = await newAgent();
      await askForWrite(agent);
      const id = await idOf(agent);
      expect(heard).toEqual([`${organisation.id} ${id}`]);
      await askForWrite(agent);
      expect(heard).toHaveLength(1);
      await decide(id, 'approve');
      stop();
      expect(heard).toHaveLength(2);
    });
  });

  describe('a call that needs more consent', () => {
    const CALL = {
      platform: 'consent',
      endpoint: '/items/1',
      method: 'PATCH',
      scope: 'demo:write',
      reason: 'to rename',
    };
    const BOTH = { consent: { scopeList: ['demo:read', 'demo:write'] } };
    let connection: string;
    beforeAll(async () => {
      const manifest = { needs: { 'demo:write': ['items.write'] } };
      await organisation.platform({ id: 'consent', manifest, secret: null });
      connection = await organisation.connection('consent', { upstreamScopes: ['items.read'] });
    });

    test('opens the access request, once, and returns where to poll it', async () => {
      const agent = await newAgent({ grants: BOTH });
      const first = await expectStatus(409, agent.act(CALL));
      expect(first.body).toMatchObject({
        error: 'needs_consent',
        reason_code: 'needs_consent',
        platform: 'consent',
        scope: 'demo:write',
        consent_requested: true,
        request_token: expect.stringMatching(/^req_/),
        poll_url: `/v1/access-request/status/${first.body.request_token}`,
      });
      const second = await agent.act(CALL);
      expect(second.body.request_token).toBe(first.body.request_token);
      expect(second.body.audit_id).not.toBe(first.body.audit_id);
      expect((await ask(agent, { platform: 'consent', scope: 'demo:write' })).body).toMatchObject({
        request_token: first.body.request_token,
        reason_code: 'needs_consent',
      });
      const shown = (await organisation.ask('GET', `/owner/access-requests/${await idOf(agent)}`)).body;
      expect(shown).toMatchObject({ reason: 'to rename', reason_code: 'needs_consent' });
      const approved = await decide(shown.request_id, 'approve');
      expect(approved.body).toMatchObject({ status: 'approved', granted: ['demo:write'] });
      expect(approved.body.next_steps).toEqual([
        { reason: 'needs_consent', detail: expect.stringContaining('demo:write') },
      ]);
      const consented = JSON.stringify(['items.read', 'items.write']);
      await world.db
        .updateTable('connections')
        .set({ upstream_scopes: consented })
        .where('id', '=', connection)
        .execute();
      expect((await agent.act(CALL)).status).toBe(200);
      const before = JSON.stringify(['items.read']);
      await world.db.updateTable('connections').set({ upstream_scopes: before }).where('id', '=', connection).execute();
    });

    test('with too many open requests it is still refused, and reports that no consent was requested', async () => {
      const agent = await newAgent({ grants: BOTH });
      for (const scope of Object.keys(MANY).slice(0, 20)) await ask(agent, { platform: 'many', scope });
      const answer = await agent.act(CALL);
      expect([answer.status, answer.body.consent_requested]).toEqual([409, false]);
      expect(answer.body).not.toHaveProperty('request_token');
    });

    test('a credential that the platform refused opens no request, but names the pending one for the same scope', async () => {
      await organisation.platform({ id: 'refusing' });
      const agent = await newAgent({ grants: { refusing: { scopeList: ['demo:read', 'demo:write'] } } });
      const call = { ...CALL, platform: 'refusing' };
      const refused = async (more: object = {}) => {
        const answer = await agent.act({ ...call, ...more });
        expect([answer.status, answer.body.error], answer.text).toEqual([409, 'platform_reauth_needed']);
        const { consent_requested, request_token, poll_url } = answer.body;
        return { consent_requested, request_token, poll_url };
      };
      const none = { consent_requested: false, request_token: undefined, poll_url: undefined };
      world.upstream.answer = (_request, response) => void response.writeHead(401).end();
      try {
        expect(await refused()).toEqual(none);
        const asked = await ask(agent, { platform: 'refusing', scope: 'demo:write' });
        expect(asked.body.reason_code, asked.text).toBe('not_connected');
        const { request_token, poll_url } = asked.body;
        expect(await refused()).toEqual({ consent_requested: true, request_token, poll_url });
        expect(await refused({ endpoint: '/items/1', method: 'GET', scope: 'demo:read' })).toEqual(none);
        await decide(await idOf(agent), 'deny');
        expect(await refused()).toEqual(none);
      } finally {
        world.upstream.answer = undefined;
      }
    });

    test('other refusals open no request', async () => {
      const agent = await newAgent();
      await agent.act(WRITE);
      const { access_requests } = await listed('?limit=200');
      expect(access_requests.some((one: { agent: { id: string } }) => one.agent.id === agent.id)).toBe(false);
    });
  });
});

describe('limits', () => {
  test('the 21st request within a minute is refused: 429 with Retry-After', async () => {
    const world = await startWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '1' });
    const organisation = await world.organisation();
    await organisation.platform();
    const agent = await organisation.agent({ rules: ALLOW_ALL, grants: READ_ONLY });
    const body = JSON.stringify({ platform: 'demo', scope: 'demo:write' });
    const asking = () =>
      agent.request('POST', '/v1/access-request', { body, headers: { 'content-type': 'application/json' } });
    const statuses: number[] = [];
    for (let i = 0; i < 20; i++) statuses.push((await asking()).status);
    expect(statuses).toEqual([202, ...Array(19).fill(200)]);
    const refused = await asking();
    expectEnvelope(refused, 429, 'rate_limited');
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    const { poll_url } = JSON.parse((await organisation.ask('GET', '/owner/access-requests')).text).access_requests[0];
    expect(poll_url).toBeUndefined();
    const token = mintToken('access_request').token.reveal();
    const polled: number[] = [];
    for (let i = 0; i < 61; i++) polled.push((await agent.get(`/v1/access-request/status/${token}`)).status);
    expect(polled).toEqual([...Array(60).fill(404), 429]);
  });
});
