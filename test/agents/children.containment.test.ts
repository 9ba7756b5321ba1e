/** A child can do at most what its parent can do at that moment (specification, Child identity). */
import { request, type ServerResponse } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { CompiledQuery } from 'kysely';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { BREAKER_LIMITS } from '../../broker/policy/breaker.ts';
import { listGrants, putGrant } from '../../broker/store/agents.ts';
import { type BreakerKey, strike } from '../../broker/store/breakers.ts';
import type { GrantTable } from '../../broker/store/tables/rules.ts';
import { readOutcome } from '../../mcp/client/read-outcome.ts';
import { afterDenial } from '../../mcp/tools/advice.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { auditIdOf, evidenceOf, expectDenied, expectEnvelope, withoutCalls } from '../world/evidence.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { fresh, givenWorld, READ } from '../world/world.ts';

const POST = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data: { a: 1 } };
const CHANGE = { ...POST, method: 'PATCH', endpoint: '/items/1' };

describe.each(ONE_STORE)(`a child and its parent on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation());
  const parent = fresh(() => organisation.agent());
  const child = fresh(() => childOf(world, organisation, parent));
  const move = (verb: string, agent = parent) => organisation.ask('POST', `/owner/agents/${agent.agentId}/${verb}`, {});
  const grantOf = async (): Promise<GrantTable> => (await listGrants(world.db, organisation.id, parent.id))[0]!;
  const change = async (terms: Partial<GrantTable>) => putGrant(world.db, { ...(await grantOf()), ...terms });
  const permissions = async () => (await child.get('/v1/agent/permissions')).body.data;

  test('its calls work as its parent’s, with rows and receipts of its own', async () => {
    const answer = await expectStatus(200, child.act(READ));
    const { row, payload } = await evidenceOf(world, child, auditIdOf(answer));
    expect(row).toMatchObject({ agent_id: child.id, agent_public_id: child.agentId });
    expect(JSON.parse(row.flags!)).toMatchObject({ parent: parent.agentId });
    expect(payload.sub).toMatch(new RegExp(`:agents:${child.agentId}$`));
    expect(payload.decision.evaluated).toContain('child_liveness');
  });

  test.each<[string, string, () => Promise<unknown>]>([
    ['is suspended', 'agent_suspended', () => move('suspend')],
    ['is revoked', 'agent_revoked', () => move('revoke')],
    ['loses the scope', 'scope_not_granted', () => change({ scopes: '["demo:write"]' })],
    [
      'loses the grant',
      'scope_not_granted',
      async () =>
        world.db
          .deleteFrom('grants')
          .where('id', '=', (await grantOf()).id)
          .execute(),
    ],
    ['has an expired grant', 'grant_expired', () => change({ expires_at: Date.now() - 1 })],
    [
      'loses its policy',
      'no_policy_assigned',
      () => world.db.updateTable('agents').set({ policy_id: null }).where('id', '=', parent.id).execute(),
    ],
    [
      'gets a policy that denies',
      'denied_by_policy',
      async () =>
        organisation.ask('POST', `/owner/agents/${parent.id}/policy`, {
          policy: await organisation.policy([{ effect: 'deny' }]),
        }),
    ],
    [
      'gets a guardrail that denies',
      'denied_by_guardrail',
      () => organisation.guardrails([{ name: 'no', effect: 'deny' }]),
    ],
    ['is limited to no repository', 'repo_not_allowed', () => change({ constraints: '{"repos":[]}' })],
    [
      'is stopped by a breaker',
      'circuit_breaker_open',
      () =>
        strike(
          world.db,
          { organisation_id: organisation.id, agent_id: parent.id, cause: 'breaker_api_error', key: '' },
          { ...BREAKER_LIMITS.breaker_api_error, strikes: 1 },
          Date.now(),
        ),
    ],
  ])('CH-11 is refused from the next call after the parent %s', async (_what, reason, contain) => {
    expect((await child.act(READ)).status).toBe(200);
    const before = await permissions();
    expect(before.platforms).toHaveLength(1);
    await contain();
    const answer = await expectDenied(world, child, READ, reason);
    // The child itself is not halted.
    expect(answer.body.error).toBe('Permission denied');
    const after = await permissions();
    expect(after.version).not.toBe(before.version);
    if (reason !== 'repo_not_allowed')
      expect(after.platforms.flatMap(({ scopes }: { scopes: string[] }) => scopes)).not.toContain('demo:read');
  });

  test.each<[string, Pick<BreakerKey, 'cause' | 'key'>, boolean]>([
    ['of all its calls', { cause: 'breaker_api_error', key: '' }, false],
    ['of one platform', { cause: 'breaker_upstream_failure', key: 'demo' }, true],
  ])(
    'CH-11 the refusal names a platform only if its parent’s breaker is of a single one: %s',
    async (_what, of, isOne) => {
      // With one more platform granted, a breaker of this platform is not one of all granted platforms.
      await organisation.platform({ id: 'spare' });
      await putGrant(world.db, { ...(await grantOf()), id: uuidv4(), platform_id: 'spare' });
      const key = { organisation_id: organisation.id, agent_id: parent.id, ...of };
      await strike(world.db, key, { ...BREAKER_LIMITS[of.cause], strikes: 1 }, Date.now());
      const answer = await expectDenied(world, child, READ, 'circuit_breaker_open');
      expect(answer.body.platform).toBe(isOne ? 'demo' : undefined);
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(55);
      const outcome = readOutcome(answer, answer.body);
      const advice = outcome.kind === 'denied' ? afterDenial(outcome, { platform: 'demo' }) : outcome.kind;
      expect(advice).toMatch(/^Wait \d+ seconds, then try one call/);
      expect(advice.includes('on demo. Other platforms can be used meanwhile.')).toBe(isOne);
    },
  );

  /** Bodies that are not read when an agent is stopped, and one that is malformed. */
  const asText = JSON.stringify(READ);
  test.each<[string, string | Uint8Array, Record<string, string>]>([
    ['in chunks', asText, { 'transfer-encoding': 'chunked' }],
    ['compressed', gzipSync(asText), { 'content-encoding': 'gzip' }],
    ['long', JSON.stringify({ ...READ, reason: 'r', data: { text: 'x'.repeat(70_000) } }), {}],
    ['malformed', '{"platform":', {}],
  ])(
    'CH-11 the stop of its parent is reported whatever the body is, without a strike: %s',
    async (what, body, headers) => {
      await move('suspend');
      const text = await new Promise<string>((done, failed) => {
        const { port } = new URL(child.baseUrl);
        const sent = { authorization: `Bearer ${child.token()}`, 'content-type': 'application/json', ...headers };
        const asked = request(
          { host: '127.0.0.1', port, method: 'POST', path: '/v1/actions', headers: sent },
          (answer) => readText(answer).then(done, failed),
        );
        asked.on('error', failed).end(body);
      });
      const { reason, audit_id } = JSON.parse(text);
      expect(reason, what).toBe('agent_suspended');
      const { row } = await evidenceOf(world, child, audit_id);
      expect(row).toMatchObject({ result: 'denied', reason: 'agent_suspended' });
      expect(await world.db.selectFrom('breakers').where('agent_id', '=', child.id).selectAll().execute()).toEqual([]);
    },
  );

  test('CH-11 a malformed call reports a breaker that halts its parent, and not one of a single platform', async () => {
    const key = { organisation_id: organisation.id, agent_id: parent.id };
    const wrong = () => child.act('[]');
    const limits = { ...BREAKER_LIMITS.breaker_upstream_failure, strikes: 1 };
    await strike(world.db, { ...key, cause: 'breaker_upstream_failure', key: 'elsewhere' }, limits, Date.now());
    expect(await wrong()).toMatchObject({ status: 400, body: { error: 'invalid_request' } });
    await strike(world.db, { ...key, cause: 'breaker_api_error', key: '' }, limits, Date.now());
    const halted = await wrong();
    expect([halted.status, halted.body.reason]).toEqual([403, 'circuit_breaker_open']);
  });

  describe('at a half-open breaker of its parent', () => {
    beforeEach(() => halfOpen(parent));
    afterEach(() => {
      world.upstream.answer = undefined;
    });

    const halfOpen = async ({ id }: TestAgent) => {
      const key = { organisation_id: organisation.id, agent_id: id, key: 'demo' };
      const cause = 'breaker_upstream_failure';
      await strike(world.db, { ...key, cause }, { ...BREAKER_LIMITS[cause], strikes: 1 }, Date.now() - 61_000);
    };
    const answering = (status: number) => {
      world.upstream.answer = (_request, response) => response.writeHead(status).end();
    };

    test('CH-11 it shares one trial call with its parent and the other children; success closes the breaker', async () => {
      const sibling = await childOf(world, organisation, parent);
      let atPlatform: ServerResponse | undefined;
      world.upstream.answer = (_request, response) => {
        atPlatform = response;
      };
      const trial = child.act(READ);
      await vi.waitUntil(() => atPlatform !== undefined, { timeout: 10_000 });
      const refused = await expectDenied(world, sibling, READ, 'circuit_breaker_open');
      expect(refused.body.halt).toBeUndefined();
      expect((await expectDenied(world, parent, READ, 'circuit_breaker_open')).body.halt).toMatchObject({
        cause: 'breaker_upstream_failure',
      });
      world.upstream.answer = undefined;
      atPlatform!.end('{}');
      expect((await trial).status).toBe(200);
      for (const each of [sibling, parent, child]) expect((await each.act(READ)).status).toBe(200);
    });

    test('CH-11 a failed trial call of a child opens the breaker again for all of them', async () => {
      answering(503);
      expect((await child.act(READ)).status).toBe(200);
      answering(200);
      expect((await expectDenied(world, parent, READ, 'circuit_breaker_open')).body.halt).toMatchObject({
        retry_after_seconds: expect.toSatisfy((seconds: number) => seconds > 55),
      });
      await expectDenied(world, child, READ, 'circuit_breaker_open');
    });

    test('CH-11 a trial call without a verdict is released, the child’s own and its parent’s', async () => {
      await halfOpen(child);
      answering(401);
      expect(await child.act(READ)).toMatchObject({ status: 409, body: { error: 'platform_reauth_needed' } });
      answering(200);
      expect((await parent.act(READ)).status).toBe(200);
      expect((await child.act(READ)).status).toBe(200);
    });

    test('CH-11 its own trial is released when another call has taken its parent’s first', async () => {
      await halfOpen(child);
      const trials = () => world.db.selectFrom('breakers').select(['agent_id', 'trial_at']).where('key', '=', 'demo');
      const { services } = world.running;
      const { loadFacts } = services;
      // Between loading the facts of the call and taking its trial.
      services.loadFacts = async (...asked) => {
        services.loadFacts = loadFacts;
        const loaded = await loadFacts(...asked);
        const taken = world.db.updateTable('breakers').set({ trial_at: Date.now() });
        await taken.where('agent_id', '=', parent.id).execute();
        return loaded;
      };
      await expectDenied(world, child, READ, 'circuit_breaker_open');
      const own = await trials().where('agent_id', '=', child.id).execute();
      expect(own).toEqual([{ agent_id: child.id, trial_at: null }]);
      const theirs = await trials().where('agent_id', '=', parent.id).execute();
      expect(theirs).toEqual([{ agent_id: parent.id, trial_at: expect.anything() }]);
    });
  });

  test('its permissions are a 304 until something of the parent changes', async () => {
    const first = await child.get('/v1/agent/permissions');
    const etag = first.headers.get('etag')!;
    const again = () => child.get('/v1/agent/permissions', { 'if-none-match': etag });
    expect((await again()).status).toBe(304);
    await change({ scopes: '["demo:read"]' });
    const narrowed = await expectStatus(200, again());
    expect(narrowed.body.data.platforms[0].scopes).toEqual(['demo:read']);
    await move('suspend');
    expect((await again()).body.data.platforms).toEqual([]);
    await move('resume');
    expect((await permissions()).version).toBe(narrowed.body.data.version);
  });

  test('a stored answer is refused, too, while its parent is stopped', async () => {
    const key = { 'idempotency-key': 'k1' };
    const first = await child.act(CHANGE, key);
    expect((await child.act(CHANGE, key)).text).toBe(first.text);
    await move('suspend');
    const refused = await withoutCalls(world, () => child.act(CHANGE, key));
    expect([refused.status, refused.body.reason]).toEqual([403, 'agent_suspended']);
    await move('resume');
    expect((await child.act(CHANGE, key)).text).toBe(first.text);
  });

  test('suspending or revoking a child affects neither the parent nor other children', async () => {
    const sibling = await childOf(world, organisation, parent);
    await move('suspend', child);
    const halted = await expectDenied(world, child, READ, 'agent_suspended');
    expect(halted.body).toMatchObject({ error: 'agent_halted', halt: { cause: 'owner_manual' } });
    await move('resume', child);
    expect((await child.act(READ)).status).toBe(200);
    await move('revoke', child);
    await expectDenied(world, child, READ, 'agent_revoked');
    expect((await child.get('/v1/agents/me')).body).toMatchObject({
      agent_status: 'revoked',
      halt: { state: 'revoked' },
    });
    for (const other of [parent, sibling]) expect((await other.act(READ)).status).toBe(200);
  });

  test('grants that the parent gets later do not extend to its child', async () => {
    const reader = await childOf(world, organisation, parent, {
      grants: [{ platform: 'demo', scopes: ['demo:read'] }],
    });
    await change({ scopes: '["demo:read"]' });
    await change({ scopes: '["demo:read","demo:write","demo:delete"]' });
    const DELETE = { platform: 'demo', endpoint: '/items/1', method: 'DELETE', scope: 'demo:delete' };
    await expectDenied(world, reader, DELETE, 'scope_not_granted');
    expect((await parent.act(DELETE)).status).toBe(200);
  });

  test('a rule that names an agent has to allow both, whatever the child’s name is', async () => {
    const policy = await organisation.policy([{ effect: 'allow', when: 'agent.name == "boss"' }]);
    const triage = await organisation.agent({ policy });
    const boss = await childOf(world, organisation, triage, { name: 'boss' });
    await expectDenied(world, triage, READ, 'denied_by_policy');
    await expectDenied(world, boss, READ, 'denied_by_policy');
    const real = await organisation.agent({ policy, name: 'boss' });
    expect((await (await childOf(world, organisation, real, { name: 'boss' })).act(READ)).status).toBe(200);
    await expectDenied(world, await childOf(world, organisation, real, { name: 'x' }), READ, 'denied_by_policy');
  });

  test('a child with too many failures is halted by its own breaker, and its parent is not', async () => {
    for (let call = 0; call < 50; call++) await child.act('{}');
    const halted = await expectDenied(world, child, READ, 'circuit_breaker_open');
    expect(halted.body.halt).toMatchObject({ state: 'breaker_open', cause: 'breaker_api_error' });
    expect((await parent.act(READ)).status).toBe(200);
    world.clock.skewMs = 61_000;
    expect((await child.act(READ)).status).toBe(200);
  });

  test('a guardrail that suspends because of a child stops its parent and all its children', async () => {
    await organisation.guardrails([{ name: 'trap', effect: 'suspend', methods: ['DELETE'] }]);
    const sibling = await childOf(world, organisation, parent, { name: 'sibling' });
    const answer = await child.act({ ...READ, endpoint: '/items/1', method: 'DELETE', scope: 'demo:delete' });
    expect(answer.body.reason).toBe('denied_by_guardrail');
    for (const one of [child, sibling]) await expectDenied(world, one, READ, 'agent_suspended');
    const halted = await expectDenied(world, parent, READ, 'agent_suspended');
    expect(halted.body.halt).toMatchObject({ state: 'suspended', cause: 'suspended_by_policy' });
    const shown = await organisation.ask('GET', `/owner/agents/${parent.agentId}`);
    expect(JSON.stringify(shown.body)).toContain(`guardrail trap by ${child.agentId}`);
  });

  test('children do not raise an agent’s limit of open access requests', async () => {
    const reader = await childOf(world, organisation, parent, {
      grants: [{ platform: 'demo', scopes: ['demo:read'] }],
    });
    const ask = (who: TestAgent, scope: string) => who.post('/v1/access-request', { platform: 'demo', scope });
    expect((await ask(reader, 'demo:write')).status).toBe(202);
    const numbers = Array.from({ length: 19 }, (_, n) => `select ${n} as n`).join(' union all ');
    await world.db.executeQuery(
      CompiledQuery.raw(
        `insert into access_requests (organisation_id, id, token, agent_id, platform_id, scope, reason_code, status, created_at, expires_at)
         select organisation_id, id || '-' || n, token || n, '${parent.id}', platform_id, scope || n, reason_code, status, created_at, expires_at
         from access_requests, (${numbers}) as more where organisation_id = '${organisation.id}'`,
      ),
    );
    expectEnvelope(await ask(reader, 'demo:delete'), 429, 'too_many_open_requests');
    expectEnvelope(await ask(child, 'demo:x'), 403, 'scope_not_grantable');
    const other = await organisation.agent({ grants: { demo: { scopeList: ['demo:read'] } } });
    expect((await ask(other, 'demo:delete')).status).toBe(202);
  });

  describe('held calls', () => {
    const hold = async (who: TestAgent): Promise<string> => {
      const answer = await who.act(POST);
      expect([answer.status, answer.body.status], answer.text).toEqual([202, 'pending_approval']);
      return answer.body.approval_id;
    };

    test('are shown as a child’s, approved, made, and read by the child', async () => {
      const id = await hold(child);
      const { body: shown } = await organisation.ask('GET', `/owner/approvals/${id}`);
      expect(shown.agent).toMatchObject({
        agent_id: child.agentId,
        parent: { agent_id: parent.agentId, name: 'triage' },
      });
      expectEnvelope(await parent.get(`/v1/approvals/${id}`), 404, 'not_found');
      expect((await organisation.approve(id)).body).toMatchObject({ executed_at: expect.any(String) });
      const { body } = await child.get(`/v1/approvals/${id}?wait=10`);
      expect(body).toMatchObject({ status: 'approved', result: { status: expect.any(Number) } });
      const pending = await child.get('/v1/agents/me/pending-actions');
      expect(pending.body.recently_completed[0]).toMatchObject({ approval_id: id, status: 'approved' });
      const { row } = await evidenceOf(world, child, body.audit_id);
      expect(JSON.parse(row.flags!)).toMatchObject({ parent: parent.agentId });
    });

    test.each<[string, string, () => Promise<unknown>]>([
      ['the parent was suspended', 'agent_suspended', () => move('suspend')],
      ['the parent lost the scope', 'scope_not_granted', () => change({ scopes: '["demo:read"]' })],
    ])('AP-06 are blocked when they are approved after %s', async (_what, reason, contain) => {
      const id = await hold(child);
      await contain();
      await withoutCalls(world, () => organisation.approve(id));
      const { body } = await organisation.ask('GET', `/owner/approvals/${id}`);
      expect(body.execution_error).toMatch(new RegExp(`^${reason}`));
    });

    test('AP-06 expire with the child when it is revoked, and cannot be approved', async () => {
      const id = await hold(child);
      await move('revoke', child);
      expectEnvelope(await withoutCalls(world, () => organisation.approve(id)), 410, 'approval_expired');
      const { body } = await organisation.ask('GET', `/owner/approvals/${id}`);
      expect([body.status, body.execution_error]).toEqual(['expired', null]);
    });

    test('children do not raise an agent’s limit of pending calls', async () => {
      await hold(parent);
      const numbers = Array.from({ length: 99 }, (_, n) => `select ${n} as n`).join(' union all ');
      await world.db.executeQuery(
        CompiledQuery.raw(
          `insert into approvals (organisation_id, id, agent_id, audit_id, status, platform_id, scope, method, path, request_hash, action, created_at, expires_at)
           select organisation_id, id || '-' || n, agent_id, audit_id, status, platform_id, scope, method, path, request_hash, action, created_at, expires_at
           from approvals, (${numbers}) as more where organisation_id = '${organisation.id}'`,
        ),
      );
      const refused = await child.act(POST);
      expectEnvelope(refused, 429, 'too_many_pending_approvals');
      expect(refused.body.detail).toBe(
        '100 calls of this agent, with its parent or children, are already waiting for a decision. Wait until some are decided.',
      );
      const other = await organisation.agent();
      await hold(await childOf(world, organisation, other));
    });
  });
});
