import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { releaseStrandedKeys } from '../../broker/audit/stranded-keys.ts';
import type { AgentPrincipal } from '../../broker/auth/principal.ts';
import { onceForKey } from '../../broker/calls/idempotency.ts';
import { canonicalJson, sha256Hex } from '../../broker/crypto/canonical.ts';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { findAuditRows } from '../../broker/store/audit-search.ts';
import { putPolicy } from '../../broker/store/governed-versions.ts';
import { claimIdempotencyKey, purgeIdempotencyKeys } from '../../broker/store/idempotency.ts';
import { type Answer, expectStatus } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { auditIdOf, evidenceOf, expectEnvelope, withoutCalls } from '../world/evidence.ts';
import { refuseAuditRows, whileAuditRowsAreRefused } from '../world/faults.ts';
import { listAuditRows } from '../world/rows.ts';
import { postgresNote, STORES, testOnOne } from '../world/stores.ts';
import { HOUR_MS } from '../world/times.ts';
import { givenWorld, shared } from '../world/world.ts';

const WRITE = { platform: 'demo', endpoint: '/items', method: 'PATCH', scope: 'demo:write', data: { a: 1 } };
const scopes = { 'demo:read': ['GET /items'], 'demo:write': ['PATCH /items', 'POST /items'] };
let keys = 0;
const newKey = () => ({ 'idempotency-key': `key-${keys++}` });

describe.each(STORES)(`Idempotency-Key on %s${postgresNote}`, (store) => {
  const onOne = testOnOne(store);
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ manifest: { scopes } }));

  test('a repeated call gets the first answer again, without a second effect or row', async () => {
    const agent = await organisation.agent();
    const key = newKey();
    const first = await agent.act(WRITE, key);
    expect([first.status, first.headers.get('idempotency-replayed')]).toEqual([200, null]);
    const rows = await listAuditRows(world.db, organisation.id, { limit: 200 });
    const again = await agent.act(WRITE, key);
    expect([again.status, again.text]).toEqual([200, first.text]);
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    expect(again.headers.get('ratelimit')).not.toBeNull();
    expect(world.upstream.seen).toHaveLength(1);
    expect(await listAuditRows(world.db, organisation.id, { limit: 200 })).toHaveLength(rows.length);
    // Counter-example: without the key, or with another one, it is a new call.
    await agent.act(WRITE);
    await agent.act(WRITE, newKey());
    expect(world.upstream.seen).toHaveLength(3);
  });

  test('a different call with the same key answers 409, and is recorded', async () => {
    const agent = await organisation.agent();
    const key = newKey();
    const first = await agent.act(WRITE, key);
    const other = { ...WRITE, method: 'POST', data: { a: 2 } };
    const answer = await withoutCalls(world, () => agent.act(other, key));
    expectEnvelope(answer, 409, 'idempotency_key_reused');
    const { platform, consent_requested, message, detail } = answer.body;
    expect({ platform, consent_requested, message }).toEqual({
      platform: 'demo',
      consent_requested: false,
      message: detail,
    });
    expect(answer.body.audit_id).not.toBe(auditIdOf(first));
    const { row, payload } = await evidenceOf(world, agent, answer.body.audit_id);
    const told = { result: 'errored', reason: 'idempotency_key_reused', method: 'POST' };
    expect(row).toMatchObject({ ...told, upstream_status: null });
    expect(payload).toMatchObject(told);
    // It counts towards no breaker, and the first call's answer is still stored.
    expect((await agent.act(WRITE, key)).text).toBe(first.text);
  });

  test('of ten concurrent calls with one key one is made; the others are told to wait, or get its answer', async () => {
    const agent = await organisation.agent();
    const key = newKey();
    const answers = await Promise.all(Array.from({ length: 10 }, () => agent.act(WRITE, key)));
    expect(world.upstream.seen).toHaveLength(1);
    const made = answers.filter(({ status }) => status === 200);
    expect(new Set(made.map(({ text }) => text)).size).toBe(1);
    for (const answer of answers.filter(({ status }) => status !== 200)) {
      expectEnvelope(answer, 409, 'idempotency_in_progress');
      expect(answer.headers.get('retry-after')).toBe('2');
      expect(answer.body.audit_id).toBe(auditIdOf(made[0]!));
    }
  });

  test('a held call is held once', async () => {
    const agent = await organisation.agent();
    const key = newKey();
    const call = { ...WRITE, method: 'POST' };
    const first = await agent.act(call, key);
    const again = await agent.act(call, key);
    expect([first.status, again.status]).toEqual([202, 202]);
    expect(again.body.approval_id).toBe(first.body.approval_id);
  });

  test('a refusal is not stored: the same call is made once it is allowed', async () => {
    const policy = await organisation.policy([{ effect: 'allow', methods: ['GET'] }], 'to-be-changed');
    const agent = await organisation.agent({ policy });
    const key = newKey();
    const refused = await agent.act(WRITE, key);
    expect([refused.status, refused.body.reason]).toEqual([403, 'denied_by_policy']);
    const { broker } = world.running;
    const rules = JSON.stringify([{ effect: 'allow' }]);
    await putPolicy(broker.store.db, { organisationId: organisation.id, id: policy, name: 'x', rules }, broker.clock());
    const answer = await agent.act(WRITE, key);
    expect([answer.status, answer.headers.get('idempotency-replayed')]).toEqual([200, null]);
    expect(auditIdOf(answer)).not.toBe(auditIdOf(refused));
  });

  test('a refusal whose key could not be released is not stored either: the same call is made once it is allowed', async () => {
    const policy = await organisation.policy([{ effect: 'allow', methods: ['GET'] }], 'to-be-changed-too');
    const agent = await organisation.agent({ policy });
    const key = newKey();
    const { broker } = world.running;
    const { db } = broker.store;
    const refused = await withoutCalls(world, () => agent.act(WRITE, key));
    const now = broker.clock();
    // The state after a connection broke at the release, or a kill before it.
    const claim = {
      organisation_id: organisation.id,
      agent_id: agent.id,
      key_hash: sha256Hex(key['idempotency-key']),
      request_hash: sha256Hex(canonicalJson(WRITE)),
      audit_id: auditIdOf(refused),
      instance_id: broker.instanceId,
      is_read: 0,
      created_at: now,
      expires_at: now + 24 * HOUR_MS,
    };
    expect(await claimIdempotencyKey(db, claim)).toBe('claimed');
    const rules = JSON.stringify([{ effect: 'allow' }]);
    await putPolicy(db, { organisationId: organisation.id, id: policy, name: 'changed', rules }, now);
    world.clock.skewMs = 31_000;
    const answer = await agent.act(WRITE, key);
    expect([answer.status, answer.headers.get('idempotency-replayed')], answer.text).toEqual([200, null]);
    // Counter-example: the key of a call that was made stays taken.
    const other = newKey();
    const made = await agent.act(WRITE, other);
    await db.updateTable('idempotency_keys').set({ status: null, answer: null }).execute();
    world.clock.skewMs = 62_000;
    const again = await withoutCalls(world, () => agent.act(WRITE, other));
    expectEnvelope(again, 409, 'idempotency_outcome_unknown');
    expect(again.body.audit_id).toBe(auditIdOf(made));
  });

  test('a call whose answer was withheld and then lost is not made again', async () => {
    const agent = await organisation.agent();
    const key = newKey();
    world.upstream.answer = (request, response) =>
      response.setHeader('content-type', 'image/png').end(Buffer.from(`\0${request.headers.authorization}`));
    const withheld = await agent.act(WRITE, key);
    expect([withheld.status, withheld.body.error]).toEqual([502, 'upstream_response_blocked']);
    // The state after a kill before the answer was stored.
    const { db } = world.running.broker.store;
    const lost = db.updateTable('idempotency_keys').set({ status: null, answer: null });
    await lost.where('agent_id', '=', agent.id).execute();
    world.clock.skewMs = 31_000;
    const again = await withoutCalls(world, () => agent.act(WRITE, key));
    expectEnvelope(again, 409, 'idempotency_outcome_unknown');
    expect(again.body.audit_id).toBe(auditIdOf(withheld));
  });

  test.each([
    ['made', 'PATCH', 200, 'was taken for dead by another'],
    ['held', 'POST', 202, 'was taken for dead by another'],
    ['made', 'PATCH', 200, 'slept for five minutes'],
    ['held', 'POST', 202, 'slept for five minutes'],
  ])(
    'a process resumes after its key was released: its call is not %s in addition to the other (%s, %i: it %s)',
    async (_, method, status, why) => {
      const agent = await organisation.agent();
      const key = newKey();
      const call = { ...WRITE, method };
      const { services, broker } = world.running;
      const { db } = broker.store;
      const { loadFacts } = services;
      let other: Answer | undefined;
      const standStill: typeof loadFacts = async (...asked) => {
        Object.assign(services, { loadFacts });
        const slept = why.startsWith('slept');
        await db
          .updateTable('idempotency_keys')
          .set(slept ? { created_at: Date.now() - 301_000 } : { instance_id: uuidv4() })
          .where('agent_id', '=', agent.id)
          .execute();
        if (!slept) expect(await releaseStrandedKeys(services)).toBe(1);
        expect(await releaseStrandedKeys(services)).toBe(0);
        other = await agent.act(call, key);
        return await loadFacts(...asked);
      };
      Object.assign(services, { loadFacts: standStill });
      const answer = await agent.act(call, key).finally(() => Object.assign(services, { loadFacts }));
      expect([answer.status, answer.body.error, other?.status], answer.text).toEqual([
        503,
        'audit_unavailable',
        status,
      ]);
      expect(answer.body.detail).toContain('so nothing was sent');
      const pending = db.selectFrom('approvals').select('id').where('agent_id', '=', agent.id);
      expect([world.upstream.seen.length, (await pending.execute()).length]).toEqual(status === 200 ? [1, 0] : [0, 1]);
      const { rows } = await findAuditRows(
        db,
        organisation.id,
        { agent: agent.agentId },
        { order: 'newest_first', limit: 9 },
      );
      expect(rows.map((row) => row.result).toSorted()).toEqual(
        status === 200 ? ['allowed', 'errored'] : ['errored', 'held'],
      );
      const closed = rows.find((row) => row.reason === 'audit_unavailable')!;
      expect(closed).toMatchObject({ state: 'final', agent_public_id: agent.agentId, method: null, path: null });
      expect(closed.detail).toContain('It was not sent');
      await evidenceOf(world, agent, closed.id);
      // Counter-example: the key of the call that was made works for it.
      expect((await agent.act(call, key)).headers.get('idempotency-replayed')).toBe('true');
    },
  );

  onOne('a GET whose process slept for five minutes is made again beside it, and both are answered', async () => {
    const agent = await organisation.agent();
    const key = newKey();
    const read = { platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' };
    const { services, broker } = world.running;
    const { db } = broker.store;
    const { loadFacts } = services;
    let other: Answer | undefined;
    const standStill: typeof loadFacts = async (...asked) => {
      Object.assign(services, { loadFacts });
      const slept = db.updateTable('idempotency_keys').set({ created_at: Date.now() - 301_000 });
      await slept.where('agent_id', '=', agent.id).execute();
      other = await agent.act(read, key);
      return await loadFacts(...asked);
    };
    Object.assign(services, { loadFacts: standStill });
    const answer = await agent.act(read, key).finally(() => Object.assign(services, { loadFacts }));
    expect([answer.status, other?.status], answer.text).toEqual([200, 200]);
    const newest = { order: 'newest_first', limit: 9 } as const;
    const { rows } = await findAuditRows(db, organisation.id, { agent: agent.agentId }, newest);
    expect(rows.map((row) => row.result)).toEqual(['allowed', 'allowed']);
  });

  test('a key that could not be released during a store outage is released afterwards', async () => {
    const agent = await organisation.agent({ policy: await organisation.policy([{ effect: 'deny' }], 'denies') });
    const key = newKey();
    const refuse = store === 'sqlite' ? `select raise(abort, 'away');` : `raise exception 'away';`;
    const trigger = 'create trigger keeps before delete on idempotency_keys';
    if (store === 'sqlite') await sql.raw(`${trigger} begin ${refuse} end`).execute(world.db);
    else {
      const body = `returns trigger language plpgsql as $$ begin ${refuse} end $$`;
      await sql.raw(`create function keep_key() ${body}`).execute(world.db);
      await sql.raw(`${trigger} for each row execute function keep_key()`).execute(world.db);
    }
    try {
      expect(await agent.act(WRITE, key)).toMatchObject({ status: 403, body: { reason: 'denied_by_policy' } });
      expectEnvelope(await agent.act(WRITE, key), 409, 'idempotency_in_progress');
    } finally {
      if (store === 'sqlite') await sql`drop trigger keeps`.execute(world.db);
      else await sql`drop function keep_key cascade`.execute(world.db);
    }
    // Otherwise its age would release it after 30 s.
    await expect
      .poll(async () => (await agent.act(WRITE, key)).body.reason, { timeout: 15_000 })
      .toBe('denied_by_policy');
  });

  test('a key whose call is recorded is not released by age', async () => {
    const agent = await organisation.agent();
    const { services, broker } = world.running;
    const { db } = broker.store;
    const key = newKey();
    const made = await agent.act(WRITE, key);
    // The state after a kill before the answer was stored.
    const lost = { status: null, answer: null, instance_id: uuidv4() };
    await db.updateTable('idempotency_keys').set(lost).where('agent_id', '=', agent.id).execute();
    expect(await releaseStrandedKeys(services)).toBe(0);
    world.clock.skewMs = 31_000;
    const again = await withoutCalls(world, () => agent.act(WRITE, key));
    expectEnvelope(again, 409, 'idempotency_outcome_unknown');
    expect(again.body.audit_id).toBe(auditIdOf(made));
    const kept = db.selectFrom('idempotency_keys').select('instance_id').where('agent_id', '=', agent.id);
    expect(await kept.execute()).toEqual([{ instance_id: null }]);
  });

  test('a call that was made and could not be recorded keeps its key, and is not made again', async () => {
    const agent = await organisation.agent();
    const key = newKey();
    const repair = await refuseAuditRows(world, 'final');
    try {
      expectEnvelope(await agent.act(WRITE, key), 503, 'audit_unavailable');
      expect(world.upstream.seen).toHaveLength(1);
      const again = await agent.act(WRITE, key);
      expect([again.status, again.body.error], again.text).toEqual([409, 'idempotency_in_progress']);
    } finally {
      await repair();
    }
    expect(await agent.act(WRITE, key)).toMatchObject({ status: 409, body: { error: 'idempotency_in_progress' } });
    expect(world.upstream.seen).toHaveLength(1);
  });

  test('a call that could not be recorded, and so was not made, leaves its key free', async () => {
    const agent = await organisation.agent();
    const key = newKey();
    await whileAuditRowsAreRefused(world, async () => {
      expectEnvelope(await withoutCalls(world, () => agent.act(WRITE, key)), 503, 'audit_unavailable');
    });
    await expect.poll(async () => (await agent.act(WRITE, key)).status).toBe(200);
    expect(world.upstream.seen).toHaveLength(1);
  });

  test('a call that a restart recorded as of unknown outcome is not reported as under way', async () => {
    const agent = await organisation.agent();
    const key = newKey();
    const made = await agent.act(WRITE, key);
    // The state after a kill before the outcome was recorded, and the recovery.
    const { db } = world.running.broker.store;
    const lost = db.updateTable('idempotency_keys').set({ status: null, answer: null });
    await lost.where('agent_id', '=', agent.id).execute();
    const settling = await withoutCalls(world, () => agent.act(WRITE, key));
    expectEnvelope(settling, 409, 'idempotency_in_progress');
    const recovered = db.updateTable('audit_rows').set({ result: 'errored', reason: 'outcome_unknown' });
    await recovered.where('id', '=', auditIdOf(made)).execute();
    const again = await withoutCalls(world, () => agent.act(WRITE, key));
    expectEnvelope(again, 409, 'idempotency_outcome_unknown');
  });

  onOne('the answer of a GET is not stored: the GET is made again', async () => {
    const agent = await organisation.agent();
    const key = newKey();
    const read = { platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' };
    const first = await agent.act(read, key);
    const again = await agent.act(read, key);
    expect([first.status, again.status, again.headers.get('idempotency-replayed')]).toEqual([200, 200, null]);
    expect(auditIdOf(again)).not.toBe(auditIdOf(first));
    expect(world.upstream.seen).toHaveLength(2);
    const kept = world.db.selectFrom('idempotency_keys').selectAll().where('agent_id', '=', agent.id);
    expect(await kept.execute()).toEqual([]);
    // A GET that was cut off may be made again too.
    world.upstream.answer = (request) => request.socket.destroy();
    expect((await agent.act(read, key)).status).toBe(502);
    world.upstream.answer = undefined;
    expect((await agent.act(read, key)).status).toBe(200);
  });

  onOne('a GET that is held is held once', async () => {
    const agent = await organisation.agent({
      policy: await organisation.policy([{ effect: 'require_approval' }], 'asks'),
    });
    const key = newKey();
    const read = { platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' };
    const [first, again] = [await agent.act(read, key), await agent.act(read, key)];
    expect([first.status, again.status]).toEqual([202, 202]);
    expect(again.body.approval_id).toBe(first.body.approval_id);
    // Also when the answer was lost: the state after a kill before it was stored.
    const { db } = world.running.broker.store;
    const lost = db.updateTable('idempotency_keys').set({ status: null, answer: null });
    await lost.where('agent_id', '=', agent.id).execute();
    world.clock.skewMs = 31_000;
    const after = await withoutCalls(world, () => agent.act(read, key));
    expectEnvelope(after, 409, 'idempotency_outcome_unknown');
    expect(after.body.audit_id).toBe(auditIdOf(first));
  });

  test('a child that gets the answer to a held call again can go on with other calls', async () => {
    const child = await childOf(world, organisation, await organisation.agent());
    const [key, call] = [newKey(), { ...WRITE, method: 'POST' }];
    const first = await expectStatus(202, child.act(call, key));
    // The retry is the first request for which the changed facts are loaded, as on another replica or after a restart.
    const grants = world.db.updateTable('grants').set({ expires_at: Date.now() + HOUR_MS });
    await grants.where('agent_id', '=', child.id).execute();
    expect((await expectStatus(202, child.act(call, key))).body.approval_id).toBe(first.body.approval_id);
    await expectStatus(200, child.act(WRITE));
  });

  test('stored answers of an agent and its children are limited in bytes: beyond that only status and audit id are stored', async () => {
    const MAX = 32 * 1024 * 1024;
    const agent = await organisation.agent();
    const child = await childOf(world, organisation, agent);
    const other = await organisation.agent();
    const kept = async () => {
      const rows = world.db.selectFrom('idempotency_keys').selectAll().where('agent_id', 'in', [agent.id, child.id]);
      return (await rows.execute()).filter(({ answer }) => answer !== null);
    };
    world.upstream.answer = (_request, response) => response.end(JSON.stringify('x'.repeat(250_000)));
    const fitting = Math.floor(MAX / 250_600);
    const actTwice = async () => {
      for (const { status, text } of await Promise.all([agent.act(WRITE, newKey()), agent.act(WRITE, newKey())]))
        expect(status, text.slice(0, 300)).toBe(200);
    };
    await actTwice();
    // Enough further answers to leave room for two: only their size matters.
    const counter = world.db.selectFrom('stored_responses').select('bytes').where('agent_id', '=', agent.id);
    const bytes = (Number((await counter.executeTakeFirstOrThrow()).bytes) / 2) * (fitting - 2);
    await world.db.updateTable('stored_responses').set({ bytes }).where('agent_id', '=', agent.id).execute();
    await actTwice();
    expect(await kept()).toHaveLength(4);
    for (const one of [agent, child]) {
      const key = newKey();
      const made = await expectStatus(200, one.act(WRITE, key));
      const again = await withoutCalls(world, () => one.act(WRITE, key));
      expectEnvelope(again, 409, 'idempotency_outcome_unknown');
      expect(again.body.detail).toContain('answered with 200');
      expect(again.body.audit_id).toBe(auditIdOf(made));
    }
    expect(await kept()).toHaveLength(4);
    // Counter-example: another agent has its own budget, and this one has it again when the answers expire.
    const theirs = newKey();
    const first = await other.act(WRITE, theirs);
    expect((await other.act(WRITE, theirs)).text).toBe(first.text);
    world.clock.skewMs = 25 * HOUR_MS;
    await purgeIdempotencyKeys(world.db, Date.now() + world.clock.skewMs);
    const mine = newKey();
    const fresh = await agent.act(WRITE, mine);
    expect((await agent.act(WRITE, mine)).text).toBe(fresh.text);
    const counted = world.db.selectFrom('stored_responses').selectAll().where('agent_id', '=', agent.id);
    expect(await counted.execute()).toHaveLength(1);
  });

  test('a key that is released while another request examines it goes to that request', async () => {
    const agent = await organisation.agent();
    const { services, broker } = world.running;
    const { db } = broker.store;
    const who = { agent: { organisation_id: organisation.id, id: agent.id } } as AgentPrincipal;
    const key = newKey()['idempotency-key'];
    const perform = async () => ({ answer: { status: 200, body: '{}' }, isKept: true });
    const request = { request: WRITE, isRead: false };
    expect(await onceForKey(services, who, key, request, perform)).toMatchObject({ kind: 'answered' });
    let gone = false;
    // Runs between the claim that meets the first request's key and the examination of that key.
    const between = db.withPlugin({
      transformQuery: ({ node }) => node,
      transformResult: async ({ result }) => {
        if (!gone) await db.deleteFrom('idempotency_keys').where('agent_id', '=', agent.id).execute();
        gone = true;
        return result;
      },
    });
    const raced = { ...services, broker: { ...broker, store: { ...broker.store, db: between } } };
    expect(await onceForKey(raced, who, key, request, perform)).toMatchObject({ kind: 'answered' });
    expect(gone).toBe(true);
  });

  onOne('an answer that is too large is not stored: a retry is told so, and the call is not made again', async () => {
    const agent = await organisation.agent();
    const key = newKey();
    // Too large in bytes, though not in characters.
    const text = 'é'.repeat(200_000);
    world.upstream.answer = (_request, response) => response.end(JSON.stringify(text));
    const made = await agent.act(WRITE, key);
    expect([made.status, made.body.data === text], made.text.slice(0, 500)).toEqual([200, true]);
    const kept = await world.db.selectFrom('idempotency_keys').selectAll().where('agent_id', '=', agent.id).execute();
    expect(kept.map(({ status, answer }) => [status, answer])).toEqual([[200, null]]);
    const again = await withoutCalls(world, () => agent.act(WRITE, key));
    expectEnvelope(again, 409, 'idempotency_outcome_unknown');
    expect(again.body.detail).toContain('too large');
    expect(again.body.audit_id).toBe(auditIdOf(made));
  });

  onOne('a stored answer that was altered is not returned, and the call is not made again', async () => {
    const agent = await organisation.agent();
    const key = newKey();
    const made = await agent.act(WRITE, key);
    const kept = world.db.selectFrom('idempotency_keys').select('answer').where('agent_id', '=', agent.id);
    const answer = Uint8Array.from((await kept.executeTakeFirstOrThrow()).answer!);
    answer[answer.length - 1]! ^= 1;
    await world.db.updateTable('idempotency_keys').set({ answer }).where('agent_id', '=', agent.id).execute();
    const again = await withoutCalls(world, () => agent.act(WRITE, key));
    expectEnvelope(again, 409, 'idempotency_outcome_unknown');
    expect(again.body.audit_id).toBe(auditIdOf(made));
  });

  onOne('a call that certainly did not reach the platform is not stored; one that may have is', async () => {
    await organisation.platform({ id: 'away', manifest: { base_url: 'https://127.0.0.1:1', scopes } });
    const agent = await organisation.agent({ grants: { away: {}, demo: {} } });
    const key = newKey();
    expect((await agent.act({ ...WRITE, platform: 'away' }, key)).status).toBe(502);
    expect((await agent.act({ ...WRITE, platform: 'away' }, key)).headers.get('idempotency-replayed')).toBeNull();
    world.upstream.answer = (request) => request.socket.destroy();
    const other = newKey();
    const lost = await agent.act(WRITE, other);
    expect([lost.status, lost.body.outcome]).toEqual([502, 'unknown']);
    const again = await agent.act(WRITE, other);
    expect([again.status, again.text]).toEqual([502, lost.text]);
    expect(world.upstream.seen).toHaveLength(1);
  });

  test('a key belongs to one agent, is kept for 24 hours, and survives a restart', async () => {
    const agent = await organisation.agent();
    const other = await organisation.agent();
    const key = newKey();
    const first = await agent.act(WRITE, key);
    expect(auditIdOf(await other.act(WRITE, key))).not.toBe(auditIdOf(first));
    await world.restart();
    world.clock.skewMs = 23 * HOUR_MS;
    expect((await agent.act(WRITE, key)).text).toBe(first.text);
    world.clock.skewMs = 25 * HOUR_MS;
    expect((await agent.act(WRITE, key)).headers.get('idempotency-replayed')).toBeNull();
    expect(world.upstream.seen).toHaveLength(3);
  });

  onOne('a halted agent is refused and recorded, even for a call that was answered before', async () => {
    const agent = await organisation.agent();
    const key = newKey();
    const first = await agent.act(WRITE, key);
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/suspend`, {});
    const halted = await withoutCalls(world, () => agent.act(WRITE, key));
    expect([halted.status, halted.body.error, halted.body.reason]).toEqual([403, 'agent_halted', 'agent_suspended']);
    expect((await evidenceOf(world, agent, auditIdOf(halted))).row.result).toBe('denied');
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/resume`, {});
    expect((await agent.act(WRITE, key)).text).toBe(first.text);
  });

  onOne(
    'an agent that lost the grant, the scope or the platform is refused and recorded, even for a call that was answered before',
    async () => {
      world.upstream.answer = (_request, response) =>
        void response.writeHead(200, { 'content-type': 'application/json' }).end('{"of":"the platform"}');
      const grants = world.db.updateTable('grants').where('organisation_id', '=', organisation.id);
      const platforms = world.db.updateTable('platforms').where('organisation_id', '=', organisation.id);
      const agent = await organisation.agent();
      const ours = grants.where('agent_id', '=', agent.id);
      const kept = await world.db
        .selectFrom('grants')
        .selectAll()
        .where('agent_id', '=', agent.id)
        .executeTakeFirstOrThrow();
      const key = newKey();
      const first = await agent.act(WRITE, key);
      expect(first.body.data).toEqual({ of: 'the platform' });
      const losses: [() => Promise<unknown>, () => Promise<unknown>, string][] = [
        [
          () => ours.set({ expires_at: Date.now() - 1_000 }).execute(),
          () => ours.set({ expires_at: kept.expires_at }).execute(),
          'grant_expired',
        ],
        [
          () => ours.set({ scopes: '["demo:read"]' }).execute(),
          () => ours.set({ scopes: kept.scopes }).execute(),
          'scope_not_granted',
        ],
        [
          () => platforms.set({ suspended: 1 }).execute(),
          () => platforms.set({ suspended: 0 }).execute(),
          'platform_suspended',
        ],
      ];
      for (const [lose, giveBack, reason] of losses) {
        await lose();
        const refused = await withoutCalls(world, () => agent.act(WRITE, key));
        expect([refused.status, refused.body.reason], refused.text).toEqual([403, reason]);
        expect(refused.text).not.toContain('of the platform');
        expect((await evidenceOf(world, agent, auditIdOf(refused))).row).toMatchObject({ result: 'denied', reason });
        await giveBack();
        expect((await agent.act(WRITE, key)).text, reason).toBe(first.text);
      }
      world.upstream.answer = undefined;
    },
  );

  test('answers and keys are not stored in plain text', async () => {
    const agent = await organisation.agent();
    world.upstream.answer = (_request, response) => response.end('"PRIVATE answer"');
    await agent.act({ ...WRITE, data: { a: 'PRIVATE question' } }, { 'idempotency-key': 'PRIVATE-key' });
    const rows = await world.db.selectFrom('idempotency_keys').selectAll().execute();
    for (const { answer, ...rest } of rows)
      expect(JSON.stringify(rest) + Buffer.from(answer ?? []).toString('latin1')).not.toContain('PRIVATE');
  });

  onOne.each(['', 'a b', 'é', 'x'.repeat(256)])('a malformed key answers 400: %j', async (value) => {
    const agent = await organisation.agent();
    const answer = await withoutCalls(world, () => agent.act(WRITE, { 'idempotency-key': value }));
    expectEnvelope(answer, 400, 'invalid_request');
    expect(answer.body.detail).toContain('Idempotency-Key');
    expect((await evidenceOf(world, agent, auditIdOf(answer))).row.result).toBe('errored');
    expect((await agent.act(WRITE, { 'idempotency-key': 'x'.repeat(255) })).status).toBe(200);
  });
});
