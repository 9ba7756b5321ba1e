/** TRQP v2.0: POST /v1/trqp/authorization and /recognition (specification, TRQP request and response base). */
import { beforeAll, describe, expect, test } from 'vitest';
import { newAgentId, uuidv4 } from '../../broker/crypto/ids.ts';
import type { AgentTable } from '../../broker/store/tables/agents.ts';
import { type Answer, expectStatus, send, type TestAgent } from '../world/agent.ts';
import { putChild } from '../world/child.ts';
import { expectDeclared } from '../world/declared-routes.ts';
import { expectProblem } from '../world/problem.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, givenWorld, type Organisation, shared } from '../world/world.ts';

const AUTHORIZATION = '/v1/trqp/authorization';
const RECOGNITION = '/v1/trqp/recognition';
const RECOGNIZED =
  'Recognized now. Status, grant, expiry, breakers, guardrails, policy, scope, endpoint, recipients and reach are checked at each call.';
const STANDING = ['status', 'grant', 'ttl', 'breaker', 'child_liveness', 'guardrails', 'policy', 'scope'];
const NOT_EVALUATED = ['endpoint', 'recipient_constraints', 'reach'];

describe.each(ONE_STORE)(`TRQP on %s${postgresNote}`, (store) => {
  let published: Organisation;
  let unpublished: Organisation;
  let host: string;
  const world = givenWorld(store);
  beforeAll(async () => {
    host = new URL(world.running.baseUrl).host;
    [published, unpublished] = [await world.organisation(), await world.organisation()];
    for (const each of [published, unpublished]) await each.platform();
    await published.ask('POST', '/owner/organisation', { publish_identity_documents: true });
  });
  const agent = shared(() => published.agent());
  const hidden = shared(() => unpublished.agent());

  const root = () => `did:web:${host.replace(':', '%3A')}`;
  const didOf = ({ agentId }: { agentId: string }) => `${root()}:agents:${agentId}`;
  const orgOf = ({ id }: { id: string }) => `${root()}:orgs:${id}`;
  const query = (of: { agentId: string }, changes: Record<string, unknown> = {}) => ({
    entity_id: didOf(of),
    authority_id: root(),
    action: 'demo:read',
    resource: 'demo',
    ...changes,
  });
  const text = (body: unknown) => (typeof body === 'string' ? body : JSON.stringify(body));
  /** Sends an anonymous query. */
  const pub = async (body: unknown, path = AUTHORIZATION, headers: Record<string, string> = {}): Promise<Answer> => {
    const answer = await send(world.running.baseUrl + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: text(body),
    });
    expectDeclared('POST', path, answer);
    return answer;
  };
  const by = (who: TestAgent, body: unknown, path = AUTHORIZATION): Promise<Answer> =>
    who.request('POST', path, { headers: { 'content-type': 'application/json' }, body: text(body) });
  const byOwner = (of: Organisation, body: unknown, path = AUTHORIZATION) => of.ask('POST', path, body);
  const ok = async (answer: Promise<Answer>) => {
    const { body } = await expectStatus(200, answer);
    return body;
  };
  const move = (of: TestAgent, verb: string) => published.ask('POST', `/owner/agents/${of.agentId}/${verb}`, {});

  describe('authorization', () => {
    test('has all members of the response, for an anonymous client', async () => {
      const answer = await pub(query(agent));
      expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(answer.headers.get('cache-control')).toBe('no-store');
      expect(answer.headers.get('ratelimit-policy')).toBe('"trqp-public";q=60000;w=60');
      const { time_requested, time_evaluated, context, message, ...rest } = answer.body;
      expect(rest).toEqual({ ...query(agent), authorized: true });
      expect(Math.abs(Date.parse(time_evaluated) - Date.now())).toBeLessThan(5_000);
      expect(time_requested).toBe(time_evaluated);
      expect(message).toMatch(/^Authorized now: .*Endpoint, recipients and reach are checked at each call\.$/);
      expect(context).toEqual({
        decision: 'allow',
        policy_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        policy_version: 1,
        evaluated: STANDING,
        not_evaluated: NOT_EVALUATED,
      });
    });

    test('is the same for the agent itself and for its owners, who are not limited by address', async () => {
      const { time_requested: _r, time_evaluated: _e, ...anybody } = await ok(pub(query(agent)));
      for (const answer of [await by(agent, query(agent)), await byOwner(published, query(agent))]) {
        const { time_requested, time_evaluated, ...same } = answer.body;
        expect(same).toEqual(anybody);
        expect(answer.headers.get('ratelimit-policy') ?? '').not.toContain('public');
      }
      expect(await ok(by(hidden, query(hidden)))).toMatchObject({ authorized: true });
      expect(await ok(byOwner(unpublished, query(hidden)))).toMatchObject({ authorized: true });
    });

    type Made = Parameters<Organisation['agent']>[0];
    test.each<[string, string, () => Promise<Made> | Made, readonly string[]]>([
      ['agent_suspended', 'deny', () => ({ agent: { status: 'suspended' } }), STANDING.slice(0, 1)],
      ['agent_revoked', 'deny', () => ({ agent: { status: 'revoked' } }), STANDING.slice(0, 1)],
      ['agent_revoked', 'deny', () => ({ agent: { expires_at: Date.now() - 1 } }), STANDING.slice(0, 1)],
      ['agent_inactive', 'deny', () => ({ agent: { status: 'pending' } }), STANDING.slice(0, 1)],
      ['agent_inactive', 'deny', () => ({ agent: { status: 'pending_bind' } }), STANDING.slice(0, 1)],
      ['no_permission_record', 'deny', () => ({ grants: {} }), STANDING.slice(0, 2)],
      ['grant_expired', 'deny', () => ({ grants: { demo: { expires_at: Date.now() - 1 } } }), STANDING.slice(0, 3)],
      ['no_policy_assigned', 'deny', () => ({ policy: null }), STANDING.slice(0, 7)],
      ['denied_by_policy', 'deny', async () => ({ policy: await published.policy([]) }), STANDING.slice(0, 7)],
      ['scope_not_granted', 'deny', () => ({ grants: { demo: { scopeList: [] } } }), STANDING],
      [
        'approval_required_by_policy',
        'require_approval',
        async () => ({ policy: await published.policy([{ effect: 'require_approval' }]) }),
        STANDING,
      ],
      [
        'approval_required_by_grant',
        'require_approval',
        () => ({ grants: { demo: { require_approval: 1 } } }),
        STANDING,
      ],
    ])('AZ-04 %s', async (reason, decision, made, evaluated) => {
      const other = await published.agent(await made());
      for (const answer of [pub(query(other)), by(other, query(other)), byOwner(published, query(other))]) {
        const { authorized, message, context } = await ok(answer);
        expect({ authorized, message }).toEqual({ authorized: false, message: reason });
        expect(context).toMatchObject({ decision, evaluated, not_evaluated: NOT_EVALUATED });
        expect(Object.hasOwn(context, 'policy_id')).toBe(reason !== 'no_policy_assigned');
      }
    });

    test('reports a guardrail, a suspended platform and an open breaker', async () => {
      const guarded = await world.organisation({ guardrails: [{ name: 'g', effect: 'deny', scopes: ['demo:write'] }] });
      await guarded.platform();
      const other = await guarded.agent({ rules: ALLOW_ALL });
      const says = async (action = 'demo:read') => (await ok(by(other, query(other, { action })))).message;
      expect(await says('demo:write')).toBe('denied_by_guardrail');
      await guarded.ask('POST', '/owner/platforms/demo/suspend', {});
      expect(await says()).toBe('platform_suspended');
      await guarded.ask('POST', '/owner/platforms/demo/resume', {});
      await Promise.all(Array.from({ length: 50 }, (_, number) => other.act({ platform: 'demo', number })));
      expect(await says()).toBe('circuit_breaker_open');
    });

    test('a scope with a rule that depends on the call is authorized, with conditional: true', async () => {
      const policy = await published.policy([
        { effect: 'allow' },
        { effect: 'deny', when: 'request.query.size() > 3' },
      ]);
      const { authorized, context } = await ok(pub(query(await published.agent({ policy }))));
      expect([authorized, context.conditional]).toEqual([true, true]);
    });

    test('policy_version is the current one', async () => {
      const made = await published.ask('POST', '/owner/policies', { name: 'versioned', rules: [{ effect: 'allow' }] });
      const policy = made.body.policy?.id ?? made.body.id;
      const other = await published.agent({ policy });
      const context = async () => (await ok(pub(query(other)))).context;
      expect(await context()).toMatchObject({ policy_id: policy, policy_version: 1, decision: 'allow' });
      const { status, text } = await published.ask('POST', '/owner/policies/versioned', {
        rules: [{ effect: 'deny' }],
      });
      expect(status, text).toBe(200);
      expect(await context()).toMatchObject({ policy_id: policy, policy_version: 2, decision: 'deny' });
    });

    test('connection_id selects one of several grants', async () => {
      const second = await published.connection('demo', { isDefault: false });
      const other = await published.agent({ grants: { demo: { scopeList: ['demo:write'], connection_id: second } } });
      const on = (connection_id: string, action: string) =>
        ok(pub(query(other, { action, context: { connection_id } })));
      const policy = { policy: await published.policy([{ effect: 'allow' }]) };
      await world.db.updateTable('agents').set({ policy_id: policy.policy }).where('id', '=', other.id).execute();
      expect(await on(second, 'demo:write')).toMatchObject({ authorized: true });
      expect(await on(second.toUpperCase(), 'demo:write')).toMatchObject({ authorized: true });
      expect(await on(second, 'demo:read')).toMatchObject({ authorized: false, message: 'scope_not_granted' });
      expect(await on(uuidv4(), 'demo:write')).toMatchObject({ authorized: false, message: 'no_permission_record' });
    });

    test('a revocation takes effect on the next query', async () => {
      const other = await published.agent();
      expect(await ok(pub(query(other)))).toMatchObject({ authorized: true });
      await move(other, 'suspend');
      expect(await ok(pub(query(other)))).toMatchObject({ authorized: false, message: 'agent_suspended' });
      await move(other, 'resume');
      expect(await ok(pub(query(other)))).toMatchObject({ authorized: true });
      await move(other, 'revoke');
      expect(await ok(pub(query(other)))).toMatchObject({ authorized: false, message: 'agent_revoked' });
    });
  });

  test('ST-07 a restored store answers no query about its agents before its review', async () => {
    const organisation = await world.organisation();
    await organisation.platform();
    const one = await organisation.agent();
    await world.db.updateTable('organisations').set({ restored: '{}' }).where('id', '=', organisation.id).execute();
    for (const path of [AUTHORIZATION, RECOGNITION]) {
      const answer = await expectStatus(503, byOwner(organisation, query(one), path));
      expect(answer.text).toContain('store_restored');
    }
  });

  describe('recognition', () => {
    const anything = { action: '*', resource: '*' };
    const recognised = async (of: { agentId: string }) => {
      const { recognized, message } = await ok(pub(query(of, anything), RECOGNITION));
      expect(recognized).toBe(message === RECOGNIZED);
      return message;
    };
    const child = (parent: TestAgent, row: Partial<AgentTable> = {}) =>
      putChild(world, published, parent, { agent: row });

    test('has all members of the response, whatever action and resource are', async () => {
      const asked = query(agent, { action: 'issue', resource: 'a b/ü' });
      for (const answer of [pub(asked, RECOGNITION), by(agent, asked, RECOGNITION)]) {
        const { time_requested, time_evaluated, ...rest } = await ok(answer);
        expect(rest).toEqual({ ...asked, recognized: true, message: RECOGNIZED });
        expect(time_requested).toBe(time_evaluated);
      }
      expect(await ok(byOwner(unpublished, query(hidden), RECOGNITION))).toMatchObject({ recognized: true });
    });

    test.each<[Partial<AgentTable>, string]>([
      [{}, RECOGNIZED],
      [{ status: 'suspended' }, 'agent_suspended'],
      [{ status: 'revoked' }, 'agent_revoked'],
      [{ status: 'deleted' }, 'agent_revoked'],
      [{ status: 'pending' }, 'agent_pending'],
      [{ status: 'pending_bind', public_key_pem: null, key_fingerprint: null }, 'agent_pending'],
      [{ expires_at: 1 }, 'expired'],
      // As it is stored after the agent's next call.
      [{ expires_at: 1, status: 'revoked', status_cause: 'unknown' }, 'expired'],
      [{ agent_type: 'mcp_client', public_key_pem: null, key_fingerprint: null }, RECOGNIZED],
    ])('of an agent that is %j: %s', async (row, message) => {
      const other = await published.agent({ agent: row, grants: {}, policy: null });
      expect(await recognised(other)).toBe(message);
      const owners = await ok(byOwner(published, query(other, anything), RECOGNITION));
      expect(owners.message).toBe(message);
    });

    test('the OpenAPI document names every message but the sentence', async () => {
      const { body } = await send(`${world.running.baseUrl}/v1/openapi.json`, {});
      const { description } = body.components.schemas.TrqpRecognition.properties.message;
      const named = description.split(': ')[1].split(/, (?:or )?/);
      const child = ['parent_not_active', 'expired'];
      const own = ['agent_suspended', 'agent_revoked', 'agent_pending'];
      expect(named).toEqual([...own, ...child, 'not_public', 'entity_not_governed_by_authority']);
    });

    test('CH-11, CH-15 a child is recognised as long as it has not expired and its parent is active', async () => {
      const parent = await published.agent({ agent: { expires_at: Date.now() + 120_000 } });
      const other = await child(parent, { expires_at: Date.now() + 60_000 });
      expect(await recognised(other)).toBe(RECOGNIZED);
      expect(await ok(pub(query(other)))).toMatchObject({ authorized: true });
      await move(parent, 'suspend');
      expect(await recognised(other)).toBe('parent_not_active');
      expect(await ok(pub(query(other)))).toMatchObject({ authorized: false, message: 'agent_suspended' });
      await move(parent, 'resume');
      expect(await recognised(other)).toBe(RECOGNIZED);
      world.clock.skewMs = 61_000;
      expect(await recognised(other)).toBe('expired');
      expect(await ok(pub(query(other)))).toMatchObject({ authorized: false, message: 'agent_revoked' });
      world.clock.skewMs = 0;
      await move(parent, 'revoke');
      expect(await recognised(other)).toBe('parent_not_active');
      expect(await ok(pub(query(other)))).toMatchObject({ authorized: false, message: 'agent_revoked' });
    });

    test('CH-15 a child is not recognised when its parent has expired', async () => {
      const parent = await published.agent({ agent: { expires_at: Date.now() + 60_000 } });
      const other = await child(parent);
      expect(await recognised(other)).toBe(RECOGNIZED);
      world.clock.skewMs = 61_000;
      expect(await recognised(other)).toBe('parent_not_active');
      expect(await recognised(parent)).toBe('expired');
    });

    test('a child is authorized at most for what its parent has', async () => {
      const parent = await published.agent({ grants: { demo: { scopeList: ['demo:read'] } } });
      const other = await child(parent);
      expect(await ok(pub(query(other)))).toMatchObject({ authorized: true });
      expect(await ok(pub(query(other, { action: 'demo:delete' })))).toMatchObject({ message: 'scope_not_granted' });
    });
  });

  describe('names', () => {
    test('of the agent: its DID with either form of the port, its id, its workload id; host names and UUIDs in any letter case', async () => {
      const [name, port] = host.split(':');
      for (const entity_id of [
        `did:web:${name}%3A${port}:agents:${agent.agentId}`,
        `did:web:${name}%3a${port}:agents:${agent.agentId}`,
        `did:web:${name}:${port}:agents:${agent.agentId}`,
        `did:web:${name!.toUpperCase()}%3A${port}:agents:${agent.agentId}`,
        agent.agentId,
        `spiffe://${host}/orgs/${published.id}/agents/${agent.agentId}`,
        `spiffe://${host}/orgs/${published.id.toUpperCase()}/agents/${agent.agentId}`,
      ])
        for (const path of [AUTHORIZATION, RECOGNITION])
          for (const ask of [pub, (body: unknown) => by(agent, body, path)]) {
            const { authorized, recognized, ...rest } = await ok(ask(query(agent, { entity_id }), path));
            expect([entity_id, authorized ?? recognized]).toEqual([entity_id, true]);
            expect(rest.entity_id, 'comes back as it was').toBe(entity_id);
          }
    });

    test('of the authority: the registry with either form of the port, and the organisation', async () => {
      for (const authority_id of [
        root(),
        `did:web:${host}`,
        root().replace('%3A', '%3a'),
        orgOf(published),
        `did:web:${host}:orgs:${published.id.toUpperCase()}`,
      ]) {
        expect(await ok(pub(query(agent, { authority_id })))).toMatchObject({ authority_id, authorized: true });
        expect(await ok(by(agent, query(agent, { authority_id }), RECOGNITION))).toMatchObject({ recognized: true });
      }
    });

    test('AZ-06 of another authority: not_public for anonymous clients, and entity_not_governed_by_authority for the agent and its owners', async () => {
      for (const authority_id of [
        orgOf(unpublished),
        `${root()}:orgs:${uuidv4()}`,
        'did:web:evil.example',
        `did:web:evil.example:orgs:${published.id}`,
        `did:web:${host.split(':')[0]}`,
        `${root()}:elsewhere`,
      ]) {
        const asked = query(agent, { authority_id });
        for (const path of [AUTHORIZATION, RECOGNITION]) {
          const told = await ok(pub(asked, path));
          expect([told.authorized ?? told.recognized, told.message, told.context]).toEqual([
            false,
            'not_public',
            undefined,
          ]);
          for (const answer of [by(agent, asked, path), byOwner(published, asked, path)]) {
            const { authorized, recognized, message, context } = await ok(answer);
            expect([authorized ?? recognized, message]).toEqual([false, 'entity_not_governed_by_authority']);
            expect(context).toBeUndefined();
          }
        }
      }
    });

    test('AZ-07 of agents of other hosts: not_public for anonymous clients, and a 401 for clients with a token', async () => {
      for (const entity_id of [
        `did:web:evil.example:agents:${agent.agentId}`,
        `did:web:${host.split(':')[0]}%3A1:agents:${agent.agentId}`,
        `did:web:${host.split(':')[0]}:agents:${agent.agentId}`,
        'did:web:evil.example',
        root(),
        orgOf(published),
        `spiffe://evil.example/orgs/${published.id}/agents/${agent.agentId}`,
        `spiffe://${host}/orgs/${unpublished.id}/agents/${agent.agentId}`,
        `spiffe://${host}/ns/default/sa/agent`,
        `spiffe://${host}`,
      ])
        for (const path of [AUTHORIZATION, RECOGNITION]) {
          expect(await ok(pub(query(agent, { entity_id }), path))).toMatchObject({ message: 'not_public' });
          expectProblem(await by(agent, query(agent, { entity_id }), path), 401, 'not_your_agent');
          expectProblem(await byOwner(published, query(agent, { entity_id }), path), 401, 'not_your_agent');
        }
    });

    test.each([
      'did:web:',
      'did:web:host/agents',
      'DID:WEB:localhost:agents:agt_aaaaaaaaaaaaaaaaaaaa',
      'did:web:localhost:agents:AGT_AAAAAAAAAAAAAAAAAAAA',
      'did:web:localhost:agents:agt_x',
      'did:web:localhost:agents:agt_aaaaaaaaaaaaaaaaaaaa:more',
      'did:web:localhost:agents:',
      'did:web:localhost%3A:agents:agt_aaaaaaaaaaaaaaaaaaaa',
      'did:web:localhost%2Fa:agents:agt_aaaaaaaaaaaaaaaaaaaa',
      'did:web:user@localhost:agents:agt_aaaaaaaaaaaaaaaaaaaa',
      'did:web:localhost:agents:agt_aaaaaaaaaaaaaaaaaaaa#key-1',
      'did:web:localhost:agents:agt_aaaaaaaaaaaaaaaaaaaa?x=1',
      'did:web:-a.example:agents:agt_aaaaaaaaaaaaaaaaaaaa',
      `did:web:${'a'.repeat(254)}:agents:agt_aaaaaaaaaaaaaaaaaaaa`,
      'did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK',
      'agt_short',
      'agt_aaaaaaaaaaaaaaaaaaaa\n',
      ' agt_aaaaaaaaaaaaaaaaaaaa',
      'AGT_AAAAAAAAAAAAAAAAAAAA',
      'spiffe://host/a/../b',
      'spiffe://host/./b',
      'spiffe://host//b',
      'spiffe://host/b/',
      'spiffe://HOST/b',
      'spiffe://host/%2e%2e/b',
      'spiffe:///b',
      'https://host/agents/agt_aaaaaaaaaaaaaaaaaaaa',
      '',
      `agt_${'a'.repeat(10_000)}`,
    ])('AZ-07 a malformed entity is a 400: %s', async (entity_id) => {
      for (const path of [AUTHORIZATION, RECOGNITION]) {
        const answer = await pub(query(agent, { entity_id }), path);
        expectProblem(answer, 400, 'invalid_request');
        expect(answer.body.detail).toMatch(/^entity_id: /);
        expect(answer.body.detail.length).toBeLessThan(300);
      }
    });

    test.each([
      'did:web:localhost:orgs:none',
      'did:web:localhost:orgs:0190a5b4-0000-7000-8000-000000000001:x',
      'localhost',
      'https://localhost',
      'did:key:z6Mk',
      '',
    ])('a malformed authority is a 400: %s', async (authority_id) => {
      const answer = await pub(query(agent, { authority_id }));
      expectProblem(answer, 400, 'invalid_request');
      expect(answer.body.detail).toMatch(/^authority_id: /);
    });
  });

  describe('the publish gate', () => {
    const BOTH = [AUTHORIZATION, RECOGNITION] as const;

    test('AZ-05 unknown, unpublished and foreign agents have identical answers, in body and headers', async () => {
      const dead = await unpublished.agent({ agent: { status: 'deleted' } });
      const waiting = await unpublished.agent({ agent: { status: 'pending' } });
      for (const path of BOTH) {
        const shown = [];
        for (const of of [hidden, dead, waiting, { agentId: newAgentId() }])
          for (const authority_id of [root(), orgOf(unpublished)]) {
            const answer = await expectStatus(200, pub(query(of, { authority_id }), path));
            const headers = Object.fromEntries(answer.headers);
            const varying = ['date', 'x-correlation-id', 'ratelimit', 'content-length'];
            for (const name of varying) delete headers[name];
            const { entity_id: _, time_requested, time_evaluated, ...body } = answer.body;
            expect(time_requested).toBe(time_evaluated);
            shown.push(JSON.stringify([headers, { ...body, authority_id: '' }, Object.keys(answer.body)]));
          }
        expect(new Set(shown).size).toBe(1);
        expect(shown[0]).toContain('"not_public"');
      }
    });

    test('AZ-05 unknown and unpublished agents cost the same: one and the same statement', async () => {
      const { store: opened } = world.running.broker;
      const { read } = opened;
      const statements = async (of: { agentId: string }, path: string) => {
        const names: string[] = [];
        opened.read = (statement, values) => {
          names.push(statement.name);
          return read(statement, values);
        };
        try {
          await ok(pub(query(of), path));
        } finally {
          opened.read = read;
        }
        return names;
      };
      for (const path of BOTH) {
        expect(await statements(hidden, path)).toEqual(['published_agent']);
        expect(await statements({ agentId: newAgentId() }, path)).toEqual(['published_agent']);
        expect(await statements(agent, path)).toEqual(['published_agent', 'fact_version']);
      }
    });

    test('publishing and unpublishing take effect on the next query', async () => {
      const other = await world.organisation();
      const its = await other.agent({ grants: {}, policy: null });
      const seen = [];
      for (const publish_identity_documents of [false, true, false]) {
        await other.ask('POST', '/owner/organisation', { publish_identity_documents });
        seen.push((await ok(pub(query(its), RECOGNITION))).message);
      }
      expect(seen).toEqual(['not_public', RECOGNIZED, 'not_public']);
    });

    test('concurrent queries each get their own answer', async () => {
      const asked = Array.from({ length: 40 }, (_, i) => [agent, hidden, { agentId: newAgentId() }][i % 3]!);
      const answers = await Promise.all(asked.map((of) => ok(pub(query(of)))));
      for (const [i, { entity_id, authorized, message }] of answers.entries())
        expect([entity_id, authorized, message === 'not_public']).toEqual([didOf(asked[i]!), i % 3 === 0, i % 3 !== 0]);
    });
  });

  describe('who may ask', () => {
    test('an agent about another one, and an owner about one of another organisation, get the same 401', async () => {
      const same = await published.agent();
      const wrong: [() => Promise<Answer>][] = [];
      for (const path of [AUTHORIZATION, RECOGNITION])
        wrong.push(
          [() => by(agent, query(same), path)],
          [() => by(agent, query(hidden), path)],
          [() => by(hidden, query(agent), path)],
          [() => by(agent, query({ agentId: newAgentId() }), path)],
          [() => byOwner(published, query(hidden), path)],
          [() => byOwner(unpublished, query(agent), path)],
          [() => byOwner(published, query({ agentId: newAgentId() }), path)],
        );
      const bodies = new Set();
      for (const [ask] of wrong) {
        const answer = await ask();
        expectProblem(answer, 401, 'not_your_agent');
        expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="agent-broker"');
        bodies.add(JSON.stringify({ ...answer.body, correlation_id: '' }));
      }
      expect(bodies.size).toBe(1);
    });

    test('an invalid bearer is a 401, never treated as anonymous', async () => {
      const expired = agent.token({
        iat: Math.floor(Date.now() / 1000) - 200,
        exp: Math.floor(Date.now() / 1000) - 140,
      });
      for (const [authorization, code] of [
        ['Bearer nonsense', 'invalid_token'],
        ['bearer', 'invalid_token'],
        [`Bearer ${expired}`, 'token_expired'],
        [`Bearer ${agent.token({ agent_id: hidden.agentId })}`, 'invalid_signature'],
      ] as const)
        for (const path of [AUTHORIZATION, RECOGNITION]) {
          const answer = await pub(query(agent), path, { authorization });
          expectProblem(answer, 401, code);
          expect(answer.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
        }
    });

    test.each(['Basic YTpi', 'Digest username="a"', ''])(
      'a header with another scheme is treated as anonymous: %j',
      async (authorization) => {
        for (const path of [AUTHORIZATION, RECOGNITION]) {
          const answer = await expectStatus(200, pub(query(agent), path, { authorization }));
          expect(answer.headers.get('ratelimit-policy')).toBe('"trqp-public";q=60000;w=60');
          expect(await ok(pub(query(hidden), path, { authorization }))).toMatchObject({ message: 'not_public' });
        }
      },
    );

    test('a suspended agent can ask about itself', async () => {
      const other = await unpublished.agent({ agent: { status: 'suspended' } });
      expect(await ok(by(other, query(other)))).toMatchObject({ authorized: false, message: 'agent_suspended' });
      expect(await ok(by(other, query(other), RECOGNITION))).toMatchObject({ message: 'agent_suspended' });
    });

    test('AZ-12 pages of other sites cannot read the answers', async () => {
      const answer = await pub(query(agent), AUTHORIZATION, { origin: 'https://evil.example' });
      expect(answer.headers.get('access-control-allow-origin')).toBeNull();
      const preflight = await send(world.running.baseUrl + AUTHORIZATION, { method: 'OPTIONS' });
      expectProblem(preflight, 405, 'method_not_allowed');
      expect(preflight.headers.get('access-control-allow-origin')).toBeNull();
    });
  });

  describe('time', () => {
    const at = (ms: number) => new Date(Date.now() + ms).toISOString();
    test.each<[string, () => string, boolean]>([
      ['now', () => at(0), false],
      ['59 s ago', () => at(-59_000), false],
      ['in 59 s', () => at(59_000), false],
      ['61 s ago', () => at(-61_500), true],
      ['in 61 s', () => at(61_500), true],
      ['1985', () => '1985-10-26T01:22:00-07:00', true],
      ['now, in small letters', () => at(0).toLowerCase(), false],
      ['a leap second', () => '2016-12-31T23:59:60Z', true],
      ['9999', () => '9999-12-31T23:59:59Z', true],
    ])('AZ-08 %s: only the current time is evaluated', async (_when, time, ignored) => {
      const sent = time();
      const asked = { context: { time: sent, locator: 'extra' } };
      for (const of of [agent, hidden])
        for (const path of [AUTHORIZATION, RECOGNITION]) {
          const { time_requested, time_evaluated, context } = await ok(pub(query(of, asked), path));
          expect(time_requested).toBe(sent);
          expect(Math.abs(Date.parse(time_evaluated) - Date.now())).toBeLessThan(5_000);
          expect(context?.time_requested_ignored).toBe(ignored ? true : undefined);
        }
    });

    test.each([
      'not a date',
      '2026-02-30T00:00:00Z',
      '2026-01-01',
      '2026-01-01 10:00:00',
      '2016-12-30T23:59:60Z',
      '',
      5,
      null,
    ])('AZ-08 %j is not a time: 400', async (time) => {
      for (const path of [AUTHORIZATION, RECOGNITION]) {
        const answer = await pub(query(agent, { context: { time } }), path);
        expectProblem(answer, 400, 'invalid_request');
        expect(answer.body.detail).toMatch(/^context\.time: /);
      }
    });
  });

  describe('AZ-10 an invalid query', () => {
    const whole = { entity_id: 'agt_aaaaaaaaaaaaaaaaaaaa', authority_id: 'did:web:x', action: 'a', resource: 'b' };
    test.each<[string, unknown, RegExp]>([
      ...(['entity_id', 'authority_id', 'action', 'resource'] as const).flatMap((name): [string, unknown, RegExp][] => [
        [`without ${name}`, { ...whole, [name]: undefined }, new RegExp(`^${name}: is missing`)],
        [`with a number as ${name}`, { ...whole, [name]: 7 }, new RegExp(`^${name}: must be a string`)],
        [`with an empty ${name}`, { ...whole, [name]: '' }, new RegExp(`^${name}: `)],
        [`with NUL in ${name}`, { ...whole, [name]: 'a\0' }, /u0000/],
        [`with a lone surrogate in ${name}`, `{"${name}":"\\ud800"}`, /surrogate/],
      ]),
      ['with a context that is a list', { ...whole, context: [] }, /^context: /],
      ['with an invalid connection id', { ...whole, context: { connection_id: 'main' } }, /^context\.connection_id: /],
      ['that is a list', [whole], /^body: /],
      ['that is null', 'null', /^body: /],
      ['that is not JSON', '{', /^offset/],
      ['with a duplicate member name', '{"action":"a","action":"b"}', /action/],
      ['that is nested too deeply', `{"context":${'['.repeat(70)}${']'.repeat(70)}}`, /deep|nest|level/i],
      ['that is empty', '', /JSON body/],
      ['with a scope of 1,025 characters', { ...whole, action: 'x'.repeat(1_025) }, /^action: /],
    ])('%s: 400', async (_what, body, detail) => {
      const answer = await pub(body, AUTHORIZATION, { 'x-request-id': 'r-1' });
      expectProblem(answer, 400, 'invalid_request');
      expect(answer.body.detail).toMatch(detail);
      expect(answer.headers.get('x-request-id')).toBe('r-1');
    });

    test('another media type or encoding: 400', async () => {
      for (const headers of [{ 'content-type': 'text/plain' }, { 'content-encoding': 'compress' }])
        expectProblem(await pub(query(agent), AUTHORIZATION, headers as never), 400, 'invalid_request');
    });

    test('more than 16 KiB: 413', async () => {
      const filled = (bytes: number) => {
        const body = query(agent, { context: { filling: '' } });
        const left = bytes - JSON.stringify(body).length;
        return { ...body, context: { filling: 'x'.repeat(left) } };
      };
      expect(await ok(pub(filled(16 * 1024)))).toMatchObject({ authorized: true });
      expectProblem(await pub(filled(16 * 1024 + 1)), 413, 'payload_too_large');
    });

    test('another method: 405', async () => {
      for (const path of [AUTHORIZATION, RECOGNITION])
        expectProblem(await send(world.running.baseUrl + path, {}), 405, 'method_not_allowed');
    });

    test('a valid query is answered, and unknown members are ignored', async () => {
      const extra = { future: { nested: [1] }, context: { locator: 'x', other: 5 } };
      const answer = await pub({ ...query(agent), ...extra }, AUTHORIZATION, { 'x-request-id': 'r-2' });
      expect([answer.status, answer.body.authorized, answer.headers.get('x-request-id')]).toEqual([200, true, 'r-2']);
      expect(Object.hasOwn(answer.body, 'future')).toBe(false);
    });
  });
});
