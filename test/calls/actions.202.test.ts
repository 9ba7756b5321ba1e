import { describe, expect, test } from 'vitest';
import { requestHash } from '../../broker/approvals/held-request.ts';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { findApproval, putApproval } from '../../broker/store/approvals.ts';
import { type Answer, expectStatus, type TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { auditIdOf, evidenceOf, expectEnvelope, withoutCalls } from '../world/evidence.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { DAY_MS } from '../world/times.ts';
import { ALLOW_ALL, CANARY, DEMO_SCOPES, givenWorld, READ, shared } from '../world/world.ts';

const WRITE = {
  platform: 'demo',
  endpoint: '/items?notify=1',
  method: 'POST',
  scope: 'demo:write',
  data: { title: 'x' },
};
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe.each(ONE_STORE)(`POST /v1/actions answers 202 on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ manifest: { recipients: { 'POST /items': ['/to'] } } }));

  /** Expects that the call was held: nothing sent, an approval, and a row and receipt with result `held`. */
  async function held(agent: TestAgent, request: Record<string, unknown>): Promise<Answer> {
    const answer = await expectStatus(
      202,
      withoutCalls(world, () => agent.act(request)),
    );
    expect(answer.body).toMatchObject({ status: 'pending_approval', message: expect.stringContaining('poll') });
    expect(answer.body.approval_id).toMatch(UUID);
    const { row, payload } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(row).toMatchObject({ result: 'held', approval_id: answer.body.approval_id, upstream_status: null });
    expect(payload).toMatchObject({ result: 'held', approval: { approval_id: answer.body.approval_id } });
    return answer;
  }

  test('a call held by the policy is queued, and its answer links to the approval', async () => {
    const agent = await organisation.agent();
    const answer = await held(agent, WRITE);
    const { approval_id, _meta, expires_at } = answer.body;
    expect(_meta).toMatchObject({ capability: 'actions.execute' });
    expect(_meta.next_actions).toContainEqual({
      capability: 'approvals.read',
      endpoint: `/v1/approvals/${approval_id}`,
    });
    expect(Date.parse(expires_at) - Date.now()).toBeGreaterThan(DAY_MS - 60_000);
    expect(answer.headers.get('ratelimit')).toMatch(/^"actions"/);
    const { row } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(row.reason).toBe('approval_required_by_policy');
    // Counter-example: what the same policy allows is sent.
    expect((await agent.act(READ)).status).toBe(200);
  });

  test('a guardrail holds what the policy allows', async () => {
    const guarded = await world.organisation({
      guardrails: [{ name: 'deletes wait', effect: 'require_approval', methods: ['DELETE'] }],
    });
    await guarded.platform();
    const agent = await guarded.agent({ rules: ALLOW_ALL });
    const answer = await held(agent, { ...READ, endpoint: '/items/1', method: 'DELETE', scope: 'demo:delete' });
    const { row, payload } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(row.reason).toBe('approval_required_by_guardrail');
    expect(payload.decision.matched).toContainEqual({
      source: 'guardrail',
      name: 'deletes wait',
      effect: 'require_approval',
    });
    expect((await agent.act(READ)).status).toBe(200);
  });

  test('a grant with require_approval holds every call', async () => {
    const agent = await organisation.agent({
      policy: await organisation.policy([{ effect: 'allow' }]),
      grants: { demo: { require_approval: 1 } },
    });
    const { row } = await evidenceOf(world, agent, auditIdOf(await held(agent, READ)));
    expect(row.reason).toBe('approval_required_by_grant');
  });

  test('the stored request is sealed and exact, with filtered headers and without the caller', async () => {
    const agent = await organisation.agent();
    const headers = { 'X-Kept': 'kept', Cookie: 'dropped=1' };
    const caller = { source: 'slack', id: 'U123456' };
    const answer = await held(agent, { ...WRITE, headers, caller, reason: 'why so', data: { title: 'PRIVATE-title' } });
    expect(answer.body._meta.dropped_headers).toEqual(['cookie']);
    const { broker } = world.running;
    const approval = (await findApproval(broker.store.db, organisation.id, answer.body.approval_id))!;
    const { action: sealed, ...open } = approval;
    expect(open).toMatchObject({ status: 'pending', audit_id: auditIdOf(answer), path: '/items', agent_id: agent.id });
    expect(JSON.stringify(open) + Buffer.from(sealed).toString('latin1')).not.toMatch(/PRIVATE|why so|notify/);
    const place = { table: 'approvals' as const, organisationId: organisation.id, rowId: approval.id };
    const { address, written, ...request } = JSON.parse(broker.vault.open(place, sealed).toString('utf8'));
    expect(address).toBe((await organisation.ask('GET', '/owner/platforms/demo')).body.manifest.base_url);
    expect(written).toMatch(/^[0-9a-f]{64}$/);
    expect(request).toEqual({
      ...WRITE,
      data: { title: 'PRIVATE-title' },
      headers: { 'x-kept': 'kept' },
      connection_id: null,
      reason: 'why so',
    });
    expect(approval.request_hash).toBe(requestHash(request));
    expect(JSON.stringify(request)).not.toContain(CANARY);
  });

  test('sending a held call again queues it again', async () => {
    const agent = await organisation.agent();
    const first = await held(agent, WRITE);
    const second = await held(agent, WRITE);
    expect(second.body.approval_id).not.toBe(first.body.approval_id);
  });

  test('AP-22 a call that violates a constraint of the grant is refused, never queued', async () => {
    const agent = await organisation.agent({
      grants: {
        demo: { scopeList: Object.keys(DEMO_SCOPES), constraints: JSON.stringify({ recipients: ['@acme.example'] }) },
      },
    });
    await held(agent, { ...WRITE, data: { to: 'ann@acme.example' } });
    const answer = await withoutCalls(world, () => agent.act({ ...WRITE, data: { to: 'eve@evil.example' } }));
    expect([answer.status, answer.body.reason]).toEqual([403, 'recipient_not_allowed']);
  });

  test('AP-24 at most 100 calls of an agent are pending, also under concurrent requests; more answer 429 until one has ended', async () => {
    const agent = await organisation.agent();
    const now = Date.now();
    for (let i = 0; i < 95; i++)
      await putApproval(world.db, {
        organisation_id: organisation.id,
        id: uuidv4(),
        agent_id: agent.id,
        audit_id: uuidv4(),
        status: 'pending',
        platform_id: 'demo',
        scope: 'demo:write',
        method: 'POST',
        path: '/items',
        request_hash: '0'.repeat(64),
        action: Buffer.alloc(1),
        sentence: null,
        created_at: now,
        expires_at: now + DAY_MS / 2,
      });
    const answers = await withoutCalls(world, () => Promise.all(Array.from({ length: 15 }, () => agent.act(WRITE))));
    expect(answers.filter(({ status }) => status === 202)).toHaveLength(5);
    const [refused, ...others] = answers.filter(({ status }) => status === 429);
    expect(others).toHaveLength(9);
    expectEnvelope(refused!, 429, 'too_many_pending_approvals');
    expect(refused!.headers.get('retry-after')).toBe('60');
    const { row } = await evidenceOf(world, agent, auditIdOf(refused!));
    expect(row).toMatchObject({ result: 'blocked', reason: 'too_many_pending_approvals', approval_id: null });
    // A child has no limit of its own.
    const child = await childOf(world, organisation, agent);
    expectEnvelope(await child.act(WRITE), 429, 'too_many_pending_approvals');
    // With an Idempotency-Key the refusal is the same, including Retry-After, and is not stored.
    const keyed = await agent.act(WRITE, { 'idempotency-key': 'k' });
    expect([keyed.status, keyed.headers.get('retry-after')]).toEqual([429, '60']);
    // Another agent has its own limit, and expired approvals no longer count.
    await held(await organisation.agent(), WRITE);
    world.clock.skewMs = DAY_MS / 2 + 1_000;
    expect((await agent.act(WRITE, { 'idempotency-key': 'k' })).status).toBe(202);
  });
});
