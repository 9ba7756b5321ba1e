import { beforeEach, describe, expect, test, vi } from 'vitest';
import { decideHeld } from '../../broker/approvals/decide.ts';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { deleteGrant, listGrants, moveAgent, putGrant } from '../../broker/store/agents.ts';
import { findApproval } from '../../broker/store/approvals.ts';
import { strike } from '../../broker/store/breakers.ts';
import { putPlatform, putPolicy } from '../../broker/store/governed-versions.ts';
import { heartbeat } from '../../broker/store/instances.ts';
import { type Claim, endIntendedReplay, moveReplay, type ReplayStep, takeClaim } from '../../broker/store/replays.ts';
import { approveAndDie } from '../world/after-crash.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { evidenceOf, expectEnvelope, withoutCalls } from '../world/evidence.ts';
import { failAtIntents } from '../world/faults.ts';
import { sized } from '../world/runner/thorough.ts';
import { everythingStored, placesOf } from '../world/store-contents.ts';
import { ONE_STORE, postgresNote, STORES, testOnOne } from '../world/stores.ts';
import { CANARY, DEMO_RULES, DEMO_SCOPES, fresh, givenWorld } from '../world/world.ts';

const WRITE = {
  platform: 'demo',
  endpoint: '/items',
  method: 'POST',
  scope: 'demo:write',
  data: { title: 'x', to: 'ann@acme.example' },
};
const REPO = {
  platform: 'codehost',
  endpoint: '/repos/acme/site/issues',
  method: 'POST',
  scope: 'codehost:issues.write',
};
const NOW = () => Date.now();

describe.each(STORES)(`the replay of an approved call on %s${postgresNote}`, (store) => {
  const onOne = testOnOne(store);
  let policy: string;
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation({ manifest: { recipients: { 'POST /items': ['/to'] } } }));
  beforeEach(async () => {
    policy = await organisation.policy(DEMO_RULES, 'p');
  });
  const agent = fresh(() => organisation.agent({ policy }));
  async function hold(by = agent, request: Record<string, unknown> = WRITE): Promise<string> {
    const answer = await expectStatus(
      202,
      withoutCalls(world, () => by.act(request)),
    );
    return answer.body.approval_id;
  }

  /** Expects: approved, and not made; the reason is reported to the agent, recorded, and in a receipt that names the approver. */
  async function blocked(id: string, reason: string, by = agent): Promise<void> {
    const decided = await withoutCalls(world, () => organisation.approve(id));
    expect([decided.status, decided.body.status], decided.text).toEqual([200, 'approved']);
    const { body } = await by.get(`/v1/approvals/${id}`);
    expect(body).toMatchObject({ status: 'approved', executed_at: null });
    expect(body.execution_error).toMatch(new RegExp(`^${reason}: \\S.*\\.$`, 's'));
    expect(body.result).toBeUndefined();
    const { row, payload } = await evidenceOf(world, by, body.audit_id);
    expect(row.reason).toBe(reason);
    expect(['denied', 'blocked', 'errored']).toContain(row.result);
    expect(payload.approval).toMatchObject({ approval_id: id, decided_by: organisation.owner.id, how: 'api' });
  }

  const grantOf = async (by: TestAgent) => (await listGrants(world.db, organisation.id, by.id))[0]!;

  const place = (by: TestAgent) => ({ organisationId: organisation.id, id: by.id });

  const CHANGES: [string, string, (id: string) => Promise<unknown>][] = [
    [
      'the grant was narrowed',
      'scope_not_granted',
      async () => putGrant(world.db, { ...(await grantOf(agent)), scopes: '["demo:read"]' }),
    ],
    [
      'the grant expired',
      'grant_expired',
      async () => putGrant(world.db, { ...(await grantOf(agent)), expires_at: NOW() - 1 }),
    ],
    [
      'the grant was taken away',
      'no_permission_record',
      async () => deleteGrant(world.db, organisation.id, (await grantOf(agent)).id, Date.now()),
    ],
    [
      'the recipients were narrowed',
      'recipient_not_allowed',
      async () => putGrant(world.db, { ...(await grantOf(agent)), constraints: '{"recipients":["@other.example"]}' }),
    ],
    [
      'the policy denies now',
      'denied_by_policy',
      () =>
        putPolicy(
          world.db,
          { organisationId: organisation.id, id: policy, name: 'p', rules: '[{"effect":"deny"}]' },
          NOW(),
        ),
    ],
    ['a guardrail denies now', 'denied_by_guardrail', () => organisation.guardrails([{ name: 'g', effect: 'deny' }])],
    [
      'the agent has no policy any more',
      'no_policy_assigned',
      () => world.db.updateTable('agents').set({ policy_id: null }).where('id', '=', agent.id).execute(),
    ],
    [
      'the platform is suspended',
      'platform_suspended',
      () =>
        world.db
          .updateTable('platforms')
          .set({ suspended: 1 })
          .where('organisation_id', '=', organisation.id)
          .execute(),
    ],
    [
      'the scope covers it no more',
      'endpoint_scope_mismatch',
      () =>
        changeManifest({ scopes: { ...DEMO_SCOPES, 'demo:write': ['PATCH /items/*'], 'demo:admin': ['POST /items'] } }),
    ],
    [
      'the connection is gone',
      'platform_not_connected',
      () => world.db.deleteFrom('connections').where('organisation_id', '=', organisation.id).execute(),
    ],
    [
      'the credential cannot be opened',
      'credential_unreadable',
      () =>
        world.db
          .updateTable('connections')
          .set({ credential: Buffer.alloc(80) })
          .where('organisation_id', '=', organisation.id)
          .execute(),
    ],
    [
      'another connection has taken its place',
      'connection_changed',
      async () => {
        const old = { is_default: 0, label: 'old' } as const;
        await world.db.updateTable('connections').set(old).where('organisation_id', '=', organisation.id).execute();
        await organisation.connection('demo', { secret: 'another-secret-0123456789' });
      },
    ],
    [
      'the platform takes a header for itself that was approved',
      'request_changed',
      () => changeManifest({ auth: { type: 'header', name: 'X-Kept' } }),
    ],
    [
      'the platform is at another address now',
      'request_changed',
      () => changeManifest({ base_url: 'https://moved.example' }),
    ],
    [
      'the operation has an address of its own now',
      'request_changed',
      () => changeManifest({ base_urls: { 'POST /items': 'https://uploads.example' } }),
    ],
    ['the platform takes forms now', 'request_changed', () => changeManifest({ body: 'form' })],
    ['the operation takes a form now', 'request_changed', () => changeManifest({ bodies: { 'POST /items': 'form' } })],
    [
      'the entry has a header of its own now',
      'request_changed',
      () => changeManifest({ default_headers: { 'X-Mode': 'live' } }),
    ],
    [
      'the platform holds one token per person now',
      'consent_required',
      () =>
        changeManifest({
          auth: { type: 'oauth2', issuer: 'https://id.example', client_id: 'x' },
          per_person: { enabled: true },
        }),
    ],
    [
      'a breaker is open',
      'circuit_breaker_open',
      () =>
        strike(
          world.db,
          { organisation_id: organisation.id, agent_id: agent.id, cause: 'breaker_upstream_failure', key: 'demo' },
          { strikes: 1, windowMs: 60_000, openMs: 60_000 },
          NOW(),
        ),
    ],
    [
      'the stored request was altered',
      'request_unreadable',
      async (id) =>
        world.db
          .updateTable('approvals')
          .set({ action: Buffer.alloc(80) })
          .where('id', '=', id)
          .execute(),
    ],
  ];

  const changeManifest = (different: Record<string, unknown>) => {
    const manifest = {
      kind: 'rest',
      base_url: `${world.upstream.url}/v1`,
      auth: { type: 'bearer' },
      scopes: DEMO_SCOPES,
      ...different,
    };
    return putPlatform(
      world.db,
      { organisationId: organisation.id, platformId: 'demo', manifest: JSON.stringify(manifest) },
      NOW(),
    );
  };

  onOne.each([
    ['suspended', 'agent_suspended'],
    ['revoked', 'agent_revoked'],
    ['deleted', 'agent_revoked'],
  ] as const)('AP-04 the agent is %s: nothing is sent', async (to, reason) => {
    const id = await hold();
    const move = { from: ['active'] as const, to, cause: 'owner_manual' as const, detail: null };
    await moveAgent(world.db, place(agent), move, NOW());
    if (to === 'deleted') {
      await withoutCalls(world, () => organisation.approve(id));
      const { body } = await organisation.ask('GET', `/owner/approvals/${id}`);
      expect(body.execution_error).toMatch(/^agent_revoked: /);
    } else await blocked(id, reason);
  });

  onOne('a rule that would hold the call again is satisfied by the approval', async () => {
    const id = await hold();
    await organisation.guardrails([{ name: 'new', effect: 'require_approval' }]);
    expect((await organisation.approve(id)).body).toMatchObject({
      executed_at: expect.any(String),
      execution_error: null,
    });
  });

  test('an approval races a revocation: the call is made, refused because of it, or expired by it', async () => {
    for (let round = 0; round < sized(3, 8); round++) {
      const victim = await organisation.agent({ policy });
      const id = await hold(victim);
      const before = world.upstream.seen.length;
      await Promise.all([organisation.approve(id), organisation.ask('POST', `/owner/agents/${victim.id}/revoke`, {})]);
      const { body } = await victim.get(`/v1/approvals/${id}`);
      const made = world.upstream.seen.length - before;
      if (body.status === 'expired') {
        expect(made).toBe(0);
        continue;
      }
      expect(body.status).toBe('approved');
      // The agent, now revoked, reads that the call was made, but not its result.
      const told = made === 1 ? /^result_withheld: The call was made\./ : /^agent_revoked: /;
      expect([made <= 1, body.result, body.execution_error]).toEqual([true, undefined, expect.stringMatching(told)]);
    }
  });

  test('AP-21 the platform hangs up: the outcome is unknown, and the call is not sent again', async () => {
    world.upstream.answer = (request) => request.socket.destroy();
    const id = await hold();
    const before = world.upstream.seen.length;
    await organisation.approve(id);
    expect(world.upstream.seen.length).toBe(before + 1);
    const { body } = await agent.get(`/v1/approvals/${id}`);
    expect(body).toMatchObject({ status: 'approved', executed_at: null });
    expect(body.execution_error).toMatch(/^outcome unknown: .*check the platform/);
    const { row } = await evidenceOf(world, agent, body.audit_id);
    expect(row).toMatchObject({ result: 'errored', reason: 'upstream_unreachable' });
  });

  test('a stopping broker lets a replay finish', async () => {
    world.upstream.answer = (_request, response) =>
      setTimeout(() => response.setHeader('content-type', 'application/json').end('{"late":1}'), 400);
    const id = await hold();
    const { services } = world.running;
    const word = { status: 'approved', how: 'api' } as const;
    const decided = await decideHeld(services, organisation.owner, id, word, { correlationId: uuidv4() });
    expect(decided.kind).toBe('decided');
    await world.restart();
    expect((await agent.get(`/v1/approvals/${id}`)).body.result).toEqual({ status: 200, data: { late: 1 } });
  });

  test('a call that is approved while the broker is shutting down is made by the next one, once', async () => {
    const id = await hold();
    const before = world.upstream.seen.length;
    world.running.services.replays.stop();
    const decided = await withoutCalls(world, () => organisation.approve(id));
    expect([decided.status, decided.body.status], decided.text).toEqual([200, 'approved']);
    await world.restart();
    const answer = await agent.get(`/v1/approvals/${id}?wait=20`);
    expect(answer.body.result.status, answer.text).toBe(200);
    expect(world.upstream.seen).toHaveLength(before + 1);
  });

  test('an approved call whose intent could not be stored is made once the store works again', async () => {
    const id = await hold();
    const repair = await failAtIntents(world);
    try {
      const decided = await withoutCalls(world, () => organisation.approve(id));
      expect(decided.body, decided.text).toMatchObject({
        status: 'approved',
        executed_at: null,
        execution_error: null,
      });
    } finally {
      await repair();
    }
    const { recorder } = world.running.services;
    await vi.waitUntil(async () => (await recorder.retryLate()) === 0, { timeout: 10_000, interval: 50 });
    const { body } = await agent.get(`/v1/approvals/${id}?wait=20`);
    expect(body).toMatchObject({ status: 'approved', result: { status: 200 } });
    expect(world.upstream.seen).toHaveLength(1);
  });

  test('only the process with the claim moves a replay, and each step is made once', async () => {
    const id = await hold();
    const mine = uuidv4();
    await heartbeat(world.db, mine, NOW());
    await approveAndDie(world, organisation, id, mine);
    const stateOf = async () => (await findApproval(world.db, organisation.id, id))!;
    const former = await stateOf();
    const claim = (await takeClaim(world.db, former, mine))!;
    expect(await takeClaim(world.db, former, mine)).toBeUndefined();
    const [audit, another] = [uuidv4(), uuidv4()];
    const failed = { exec_state: 'failed', executed_at: null, execution_error: 'x' } as const;
    const move = (by: Claim, auditId: string, step: ReplayStep) => moveReplay(world.db, by, auditId, step, NOW());
    const end = (auditId: string) => endIntendedReplay(world.db, claim, auditId, failed, NOW());
    expect(await move(former, audit, { exec_state: 'intent' })).toBe(false);
    expect(await end(audit)).toBe(false);
    expect(await move(claim, audit, { exec_state: 'intent' })).toBe(true);
    expect(await takeClaim(world.db, claim, mine)).toBeUndefined();
    for (const step of [{ exec_state: 'intent' }, failed] as const)
      expect(await move(claim, another, step)).toBe(false);
    expect(await end(another)).toBe(false);
    expect(await stateOf()).toMatchObject({ exec_state: 'intent', replay_audit_id: audit });
    expect(await end(audit)).toBe(true);
    expect([await move(claim, audit, failed), await end(audit)]).toEqual([false, false]);
  });

  test('AP-26 a result has a size limit, may hold NUL, and never the credential; it is stored sealed', async () => {
    const big = 'é'.repeat(200 * 1024);
    world.upstream.answer = (request, response) =>
      response
        .setHeader('content-type', 'application/json')
        .end(JSON.stringify({ nul: 'a\u0000b', echo: request.headers.authorization, big }));
    const id = await hold();
    await organisation.approve(id);
    const { result } = (await agent.get(`/v1/approvals/${id}`)).body;
    expect(result).toMatchObject({ status: 200, truncated: true });
    expect(result.bytes).toBeGreaterThan(400 * 1024);
    expect(Buffer.byteLength(result.data)).toBeLessThanOrEqual(256 * 1024);
    expect(result.data).toMatch(/^\{"nul":"a\\u0000b"/);
    expect(result.data).not.toContain('\ufffd');
    expect(result.data).not.toContain(CANARY);
    world.upstream.answer = (_request, response) =>
      response
        .setHeader('content-type', 'application/json')
        .end(JSON.stringify({ nul: 'a\u0000b', secret: 'RESULT-CANARY-1' }));
    const small = await hold();
    await organisation.approve(small);
    expect((await agent.get(`/v1/approvals/${small}`)).body.result.data).toEqual({
      nul: 'a\u0000b',
      secret: 'RESULT-CANARY-1',
    });
    const stored = await everythingStored(world.environment);
    expect(placesOf('RESULT-CANARY-1', stored)).toEqual([]);
    expect(placesOf(CANARY, stored)).toEqual([]);
  });

  // The remaining tests do not depend on the store's SQL.
  if (!ONE_STORE.includes(store)) return;

  onOne('the result of an approved call has the same headers as the answer of an ordinary call', async () => {
    world.upstream.answer = (_request, response) => {
      response.writeHead(429, { 'retry-after': '30', 'x-other': 'x' }).end('{}');
    };
    const id = await hold();
    await organisation.approve(id);
    const { body } = await agent.get(`/v1/approvals/${id}?wait=20`);
    expect(body.result).toEqual({ status: 429, data: {}, headers: { 'retry-after': '30' } });
  });

  onOne(
    'the result of an approved call says where the platform redirects to, and that the credential was removed',
    async () => {
      world.upstream.answer = (request, response) => {
        response
          .writeHead(303, { location: 'https://files.example/report?signature=x', 'content-type': 'application/json' })
          .end(JSON.stringify({ echo: request.headers.authorization }));
      };
      const id = await hold();
      await organisation.approve(id);
      const { result } = (await agent.get(`/v1/approvals/${id}?wait=20`)).body;
      expect(result).toMatchObject({ status: 303, location: 'https://files.example/report', redacted: true });
    },
  );

  onOne.each(CHANGES)('AP-05 R3 %s: %s, and nothing is sent', async (_what, reason, change) => {
    const request = { ...WRITE, headers: { 'X-Kept': 'kept' } };
    const id = await hold(agent, request);
    const twin = await hold(agent, request);
    expect((await organisation.approve(twin)).body).toMatchObject({
      status: 'approved',
      executed_at: expect.any(String),
    });
    await change(id);
    await blocked(id, reason);
  });

  onOne('AP-05 the repository was removed from the allow-list: nothing is sent', async () => {
    const scopes = { 'codehost:issues.write': ['POST /repos/*/*/issues'] };
    await organisation.platform({ id: 'codehost', manifest: { scopes } });
    const grants = { codehost: { scopeList: Object.keys(scopes), constraints: '{"repos":["acme/*"]}' } };
    const coder = await organisation.agent({ policy, grants });
    const id = await hold(coder, REPO);
    await putGrant(world.db, { ...(await grantOf(coder)), constraints: '{"repos":["acme/other"]}' });
    await blocked(id, 'repo_not_allowed', coder);
  });

  test('AP-06 R3 a child’s pending call is not made when its parent was suspended', async () => {
    const parent = await organisation.agent({ policy });
    const child = await childOf(world, organisation, parent);
    const id = await hold(child);
    const move = { from: ['active'] as const, to: 'suspended' as const, cause: 'owner_manual' as const, detail: null };
    await moveAgent(world.db, place(parent), move, NOW());
    await withoutCalls(world, () => organisation.approve(id));
    const { body } = await organisation.ask('GET', `/owner/approvals/${id}`);
    expect([body.status, body.executed_at]).toEqual(['approved', null]);
    expect(body.execution_error).toMatch(/^agent_suspended/);
  });

  onOne('AP-06 a child’s pending call expires with the child', async () => {
    const parent = await organisation.agent({ policy });
    const child = await childOf(world, organisation, parent);
    const id = await hold(child);
    world.clock.skewMs = 3_600_000 + 1_000;
    expectEnvelope(await withoutCalls(world, () => organisation.approve(id)), 410, 'approval_expired');
    const { body } = await organisation.ask('GET', `/owner/approvals/${id}`);
    expect([body.status, body.executed_at]).toEqual(['expired', null]);
  });

  onOne('AP-06 a child’s pending call expires with its parent', async () => {
    const parent = await organisation.agent({ policy });
    const child = await childOf(world, organisation, parent);
    const expires_at = NOW() + 60_000;
    await world.db.updateTable('agents').set({ expires_at }).where('id', '=', parent.id).execute();
    const { body } = await organisation.ask('GET', `/owner/approvals/${await hold(child)}`);
    expect(Date.parse(body.expires_at)).toBe(expires_at);
  });

  onOne.each([404, 409, 500])('an answer with status %i is stored as the result', async (status) => {
    world.upstream.answer = (_request, response) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end('{"n":12345678901234567890}');
    const id = await hold();
    await organisation.approve(id);
    const answer = await agent.get(`/v1/approvals/${id}`);
    expect(answer.body.result.status).toBe(status);
    expect(answer.text).toContain('"data":{"n":12345678901234567890}');
  });

  onOne(
    'a call whose answer is withheld is reported as executed, without a result, in the approval and in pending-actions',
    async () => {
      world.upstream.answer = (_request, response) =>
        response
          .setHeader('content-type', 'image/png')
          .end(Buffer.concat([Buffer.from([0x89, 0, 255]), Buffer.from(CANARY)]));
      const id = await hold();
      const { executed_at } = (await organisation.approve(id)).body;
      expect(executed_at).toEqual(expect.any(String));
      const { body } = await agent.get(`/v1/approvals/${id}`);
      const execution_error = expect.stringMatching(/^upstream_response_blocked: The call was made\. /);
      expect(body).toMatchObject({ status: 'approved', executed_at, execution_error });
      expect(body).not.toHaveProperty('result');
      const { recently_completed } = (await agent.get('/v1/agents/me/pending-actions')).body;
      expect(recently_completed).toMatchObject([
        { approval_id: id, executed_at, result_summary: null, execution_error },
      ]);
      const { row } = await evidenceOf(world, agent, body.audit_id);
      expect(row).toMatchObject({ result: 'blocked', upstream_status: 200, finished_at: Date.parse(executed_at) });
    },
  );

  test('AP-21 the owner disconnects while the platform works: the call is made all the same', async () => {
    let finish: () => void = () => {};
    const asked = new Promise<void>((resolve) => {
      world.upstream.answer = (_request, response) => {
        finish = () => response.setHeader('content-type', 'application/json').end('{"ok":true}');
        resolve();
      };
    });
    const id = await hold();
    const gone = new AbortController();
    const { token } = mintOwnerSession(world.running.broker, organisation.owner);
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const asking = fetch(`${world.running.baseUrl}/owner/approvals/${id}/approve`, {
      method: 'POST',
      body: '{}',
      headers,
      signal: gone.signal,
    }).catch(() => 'aborted');
    await asked;
    gone.abort();
    expect(await asking).toBe('aborted');
    const waiting = agent.get(`/v1/approvals/${id}?wait=20`);
    finish();
    expect((await waiting).body.result).toEqual({ status: 200, data: { ok: true } });
  });

  test('bytes are stored as base64; a held read is replayed like a change', async () => {
    const reader = await organisation.agent({ policy, grants: { demo: { require_approval: 1 } } });
    world.upstream.answer = (_request, response) =>
      response.setHeader('content-type', 'image/png').end(Buffer.from([0x89, 0, 1]));
    const id = await hold(reader, { platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' });
    await organisation.approve(id);
    const { body } = await reader.get(`/v1/approvals/${id}`);
    expect(body.result).toEqual({ status: 200, data: 'iQAB', encoding: 'base64', content_type: 'image/png' });
    const { recently_completed } = (await reader.get('/v1/agents/me/pending-actions')).body;
    expect(recently_completed[0].result_summary).toBe('status 200, image/png, 3 bytes');
  });
});
