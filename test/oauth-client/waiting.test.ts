/** Calls that wait for a token, and refused tokens: decisions made during the wait apply, and errors are accurate. */
import type { ServerResponse } from 'node:http';
import { beforeEach, describe, expect, test } from 'vitest';
import { rawClient } from '../proxy/raw-client.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { browserOf, connectAtOnce, outlive, pressConnect } from '../world/browser/connecting.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { startLyingServer } from '../world/servers/lying-authorization-server.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { MINUTE_MS } from '../world/times.ts';
import { type Organisation, shared, startWorld } from '../world/world.ts';

const READ = { platform: 'docs', endpoint: '/items', method: 'GET', scope: 'docs:read' };
const OTHER = { ...READ, endpoint: '/others' };
const JSON_TYPE = { 'content-type': 'application/json' };

describe.each(ONE_STORE)(`calls that wait for a token on %s${postgresNote}`, (store) => {
  let organisation: Organisation;
  let agent: TestAgent;
  let connection: string;
  const server = shared(() => startLyingServer());
  // Not givenWorld: the clock is not set back between the tests.
  const world = shared(() => startWorld(store, { AGENT_BROKER_ALLOW_PRIVATE: server.address }));
  beforeEach(async () => {
    world.clock.skewMs += 11 * MINUTE_MS;
    server.beHonest();
    server.asked.length = 0;
    server.seen.length = 0;
    organisation = await world.organisation();
    const manifest = {
      base_url: `${server.issuer}/api`,
      auth: server.auth(),
      scopes: { 'docs:read': ['GET /items', 'GET /others'] },
    };
    await organisation.platform({ id: 'docs', manifest, secret: null });
    connection = await organisation.connection('docs', { secret: null });
    agent = await organisation.agent({
      policy: await organisation.policy([{ effect: 'allow' }]),
      grants: { docs: { scopeList: ['docs:read'] } },
    });
    agent.clock = () => Date.now() + world.clock.skewMs;
    await connectAtOnce(world, organisation.owner, connection);
  });
  const sent = () => server.seen.filter((one) => one.startsWith('GET /api/')).length;
  const state = async () => (await organisation.ask('GET', '/owner/connections')).body.connections[0].state;

  /** Delays the token endpoint. `arrived`: a request waits there; `answer`: lets the request through. */
  function holdTokens(): { arrived: Promise<void>; answer: (status?: number) => void } {
    let waiting: ServerResponse;
    const arrived = new Promise<void>((resolve) => {
      server.answers.set('/token', (_request, response) => {
        waiting = response;
        resolve();
      });
    });
    return {
      arrived,
      answer: (status = 200) =>
        waiting.writeHead(status, JSON_TYPE).end(status === 200 ? JSON.stringify(server.rotate()) : '{}'),
    };
  }

  test('a consent at one platform is not stored when a file moved the connection to another platform meanwhile', async () => {
    const manifest = {
      base_url: `${server.issuer}/other`,
      auth: server.auth(),
      scopes: { 'other:read': ['GET /items'] },
    };
    await organisation.platform({ id: 'other', manifest, secret: null });
    const [{ label }] = (await organisation.ask('GET', '/owner/connections')).body.connections;
    const { arrived, answer } = holdTokens();
    const browser = browserOf(world, organisation.owner);
    const visit = browser.get((await pressConnect(world, browser, connection)).body.authorization_url);
    await arrived;
    const text = JSON.stringify({ connections: { [label]: { platform: 'other' } } });
    await expectStatus(200, organisation.ask('POST', '/owner/governance/apply', { text, values: {} }));
    answer();
    expect((await visit).text).toContain('given to another platform in the meantime');
    expect(await state()).toBe('not_connected');
    expect(server.seen).toContain('POST /revoke');
  });

  test('a token that expires while the authorization server is unavailable makes the call fail, and the connection stays', async () => {
    await outlive(world, connection, 5_000);
    const { arrived, answer } = holdTokens();
    const call = agent.act(READ);
    await arrived;
    world.clock.skewMs += 10_000;
    answer(503);
    const answered = await call;
    expectEnvelope(answered, 502, 'upstream_unreachable');
    expect(answered.body).toMatchObject({ code: 'token_unavailable', outcome: 'not_sent' });
    expect([await state(), sent()]).toEqual(['connected', 0]);
  });

  test('control case: a token that is still valid is used when the server is unavailable', async () => {
    await outlive(world, connection, 5_000);
    const { arrived, answer } = holdTokens();
    const call = agent.act(READ);
    await arrived;
    answer(503);
    expect((await call).status).toBe(200);
  });

  test('disconnecting while a call waits for a token prevents the call, although the old token is still valid', async () => {
    await outlive(world, connection, MINUTE_MS);
    const { arrived, answer } = holdTokens();
    const call = agent.act(READ);
    await arrived;
    await expectStatus(200, organisation.ask('POST', `/owner/connections/${connection}/oauth/disconnect`));
    answer();
    const answered = await call;
    expect([answered.status, answered.body.error], answered.text).toEqual([409, 'platform_reauth_needed']);
    expect(sent()).toBe(0);
  });

  test('a refusal of tokens that were replaced while the call was made does not mark the new ones', async () => {
    // Tokens that cannot be refreshed: the call is not repeated with the new ones.
    server.token = { refresh_token: undefined, expires_in: undefined };
    await connectAtOnce(world, organisation.owner, connection);
    const refusing = async (meanwhile: () => Promise<void>) => {
      world.clock.skewMs += MINUTE_MS;
      const { promise: arrived, resolve } = Promise.withResolvers<ServerResponse>();
      server.answers.set('/api/items', (_request, response) => resolve(response));
      const call = agent.act(READ);
      const response = await arrived;
      world.clock.skewMs += 1_000;
      await meanwhile();
      response.writeHead(401, JSON_TYPE).end('{}');
      const answer = await call;
      expect([answer.status, answer.body.error], answer.text).toEqual([409, 'platform_reauth_needed']);
      return await state();
    };
    expect(await refusing(() => connectAtOnce(world, organisation.owner, connection))).toBe('connected');
    expect(await refusing(async () => {})).toBe('reauth_needed');
  });

  describe('during a wait of more than a tenth of a second', () => {
    /** Makes a call wait, does something meanwhile, and returns the agent's answer. */
    async function whileWaiting(work: () => Promise<unknown>, make = () => agent.act(READ)) {
      const { arrived, answer } = holdTokens();
      const call = make();
      await arrived;
      const begun = performance.now();
      await work();
      setTimeout(answer, Math.max(0, 150 - (performance.now() - begun)));
      return await call;
    }
    const suspend = async () => {
      await expectStatus(200, organisation.ask('POST', `/owner/agents/${agent.agentId}/suspend`, { reason: 'odd' }));
    };

    test('before a call: an agent that was suspended is refused, and nothing is sent', async () => {
      await outlive(world, connection, MINUTE_MS);
      const answer = await whileWaiting(suspend);
      expect([answer.status, answer.body.reason], answer.text).toEqual([403, 'agent_suspended']);
      expect(sent()).toBe(0);
      const { rows } = (await organisation.ask('GET', '/owner/audit')).body;
      const row = rows.find(({ id }: { id: string }) => id === answer.body.audit_id);
      expect(row).toMatchObject({ result: 'denied', reason: 'agent_suspended' });
    });

    test('after a refusal by the platform: an agent that was suspended is refused, and nothing is sent again', async () => {
      world.clock.skewMs += MINUTE_MS;
      server.good.clear();
      const answer = await whileWaiting(suspend);
      expect([answer.status, answer.body.reason, sent()], answer.text).toEqual([403, 'agent_suspended', 1]);
    });

    test('a new rule that would hold the call prevents it', async () => {
      await outlive(world, connection, MINUTE_MS);
      const answer = await whileWaiting(() =>
        organisation.guardrails([{ name: 'ask', effect: 'require_approval', methods: ['GET'] }]),
      );
      expectEnvelope(answer, 502, 'upstream_unreachable');
      expect(answer.body).toMatchObject({ code: 'token_unavailable', outcome: 'not_sent' });
      expect(sent()).toBe(0);
    });

    const AFTER = { endpoints: ['/others'], within: '1h' };
    const LIMIT = { most: 5, of: '10', per: 'day' };
    const ELSEWHERE = { name: 'r', effect: 'deny', endpoints: ['/nothing'] };
    const HERE = { ...ELSEWHERE, endpoints: ['/items'] };
    test.each<[string, object, object, number]>([
      [
        'a rule that looks back, which is about this call now',
        { ...ELSEWHERE, after: AFTER },
        { ...HERE, after: AFTER },
        403,
      ],
      ['a limit, which is new', ELSEWHERE, { ...HERE, limit: LIMIT }, 502],
      ['a limit, which is about this call now', { ...ELSEWHERE, limit: LIMIT }, { ...HERE, limit: LIMIT }, 502],
      [
        'a limit, which was raised',
        { ...HERE, limit: { ...LIMIT, most: 50 } },
        { ...HERE, limit: { ...LIMIT, most: 60 } },
        502,
      ],
      [
        'a rule that looks back at this call, which is new',
        ELSEWHERE,
        { ...ELSEWHERE, after: { ...AFTER, endpoints: ['/items'] } },
        502,
      ],
      ['a mask, which is new', ELSEWHERE, { name: 'r', effect: 'mask', mask: { values: ['email'] } }, 502],
    ])('%s: the call is not sent', async (_, before, then, status) => {
      await organisation.guardrails([before]);
      expect((await agent.act(OTHER)).status).toBe(200);
      await outlive(world, connection, MINUTE_MS);
      const answer = await whileWaiting(() => organisation.guardrails([then]));
      expect([answer.status, server.seen.includes('GET /api/items')], answer.text).toEqual([status, false]);
      expect(answer.body).toMatchObject(
        status === 403 ? { reason: 'denied_by_guardrail' } : { code: 'token_unavailable', outcome: 'not_sent' },
      );
    });

    test('control case: with unchanged rules, including limits and rules that look back at the call itself, the call is sent', async () => {
      await organisation.guardrails([
        { ...HERE, after: { endpoints: ['/items'], within: '1h' } },
        { ...HERE, name: 'l', limit: { ...LIMIT, most: 50 } },
      ]);
      await outlive(world, connection, MINUTE_MS);
      const answer = await whileWaiting(async () => undefined);
      expect([answer.status, sent()], answer.text).toEqual([200, 1]);
    });

    test('a call whose default connection changed is not sent through the old one', async () => {
      await outlive(world, connection, MINUTE_MS);
      const answer = await whileWaiting(async () => {
        const body = { platform: 'docs', label: 'other', default: true };
        await expectStatus(201, organisation.ask('POST', '/owner/connections', body));
      });
      expectEnvelope(answer, 502, 'upstream_unreachable');
      expect(answer.body).toMatchObject({ code: 'token_unavailable', outcome: 'not_sent' });
      expect(sent()).toBe(0);
    });

    test('an approved held call is sent after the wait: its approval satisfies the hold', async () => {
      await organisation.guardrails([{ name: 'ask', effect: 'require_approval', methods: ['GET'] }]);
      const held = await expectStatus(202, agent.act(READ));
      await outlive(world, connection, MINUTE_MS);
      const approve = () => organisation.approve(held.body.approval_id);
      const { body } = await whileWaiting(async () => undefined, approve);
      expect(body).toMatchObject({ status: 'approved', executed_at: expect.any(String) });
      expect(sent()).toBe(1);
    });

    test('an approved held call is not sent after the wait when its rule needs the approval of more people now', async () => {
      const rule = { name: 'ask', effect: 'require_approval', methods: ['GET'] };
      await organisation.guardrails([rule]);
      const held = await expectStatus(202, agent.act(READ));
      await outlive(world, connection, MINUTE_MS);
      const { body } = await whileWaiting(
        () => organisation.guardrails([{ ...rule, approvers: 2 }]),
        () => organisation.approve(held.body.approval_id),
      );
      expect(body).toMatchObject({ status: 'approved', executed_at: null });
      expect(body.execution_error).toContain('changed while its token was refreshed. Nothing was sent');
      expect(sent()).toBe(0);
    });

    test('a standing approval that is revoked during the wait lets nothing pass; its last use is enough otherwise', async () => {
      const rule = { name: 'ask', effect: 'require_approval', methods: ['GET'], remember: true };
      await organisation.guardrails([rule]);
      const useLast = async (meanwhile: (standing: string) => Promise<unknown>) => {
        const held = await expectStatus(202, agent.act(READ));
        const standing = { count: 1, for_seconds: 3600, free: [] };
        const approved = await expectStatus(200, organisation.approve(held.body.approval_id, { standing }));
        await outlive(world, connection, MINUTE_MS);
        const before = sent();
        const answer = await whileWaiting(() => meanwhile(approved.body.standing_approval));
        return [answer.status, sent() - before];
      };
      expect(await useLast(async () => undefined)).toEqual([200, 1]);
      const revoke = (id: string) =>
        world.db
          .updateTable('standing_approvals')
          .set({ ended_at: 1, ended_because: 'owner', ended_by: organisation.owner.id })
          .where('id', '=', id)
          .execute();
      expect(await useLast(revoke)).toEqual([502, 0]);
    });

    test('control case: without a change the call is sent once, with the new token', async () => {
      await outlive(world, connection, MINUTE_MS);
      const answer = await whileWaiting(async () => undefined);
      expect([answer.status, sent()], answer.text).toEqual([200, 1]);
    });
  });

  describe('a platform that answers 401 to a token that was just issued', () => {
    const refuse = (path: string) =>
      server.answers.set(`/api${path}`, (_request, response) =>
        response.writeHead(401, JSON_TYPE).end('{"error":"this needs another kind of account"}'),
      );

    test('at one endpoint: the agent gets the platform’s answer, and the connection stays usable', async () => {
      refuse('/others');
      for (let i = 0; i < 2; i++) {
        const answer = await agent.act(OTHER);
        expect([answer.status, answer.body._meta?.upstream_status], answer.text).toEqual([200, 401]);
        expect(answer.body.data).toEqual({ error: 'this needs another kind of account' });
        expect(await state()).toBe('connected');
        expect((await agent.act(READ)).status).toBe(200);
      }
      expect(server.asked).toHaveLength(1);
    });

    test('at the raw entry point: the client gets the platform’s answer unchanged', async () => {
      refuse('/others');
      const answer = await rawClient(() => agent)('GET', '/proxy/docs-main/others');
      expect([answer.status, answer.text]).toEqual([401, '{"error":"this needs another kind of account"}']);
      expect(answer.headers.get('content-type')).toBe('application/json');
    });

    test('and again after a refresh: the agent gets the platform’s answer', async () => {
      world.clock.skewMs += MINUTE_MS;
      refuse('/others');
      const answer = await agent.act(OTHER);
      expect([answer.status, answer.body._meta?.upstream_status], answer.text).toEqual([200, 401]);
      expect([server.asked.length, await state()]).toEqual([2, 'connected']);
    });

    test.each([
      ['at two endpoints', READ, 0],
      ['at one for a minute', OTHER, MINUTE_MS],
    ])('%s: an owner has to connect again', async (_name, next, laterMs) => {
      refuse('/others');
      refuse('/items');
      expect((await agent.act(OTHER)).status).toBe(200);
      world.clock.skewMs += laterMs;
      const answer = await agent.act(next);
      expect([answer.status, answer.body.error], answer.text).toEqual([409, 'platform_reauth_needed']);
      expect(await state()).toBe('reauth_needed');
      // The platform accepts the credential again.
      server.answers.clear();
      server.answers.set('/api/others', (_request, response) => response.writeHead(200, JSON_TYPE).end('{}'));
      expect((await agent.act(OTHER)).status).toBe(200);
      expect(await state()).toBe('connected');
    });

    test('what was refused before counts no more once an owner has connected again', async () => {
      refuse('/others');
      refuse('/items');
      expect((await agent.act(OTHER)).status).toBe(200);
      expect((await agent.act(READ)).status).toBe(409);
      expect((await agent.act(OTHER)).status).toBe(409);
      await connectAtOnce(world, organisation.owner, connection);
      expect(await state()).toBe('connected');
      expect((await agent.act(READ)).status).toBe(200);
      expect(await state()).toBe('connected');
    });
  });
});
