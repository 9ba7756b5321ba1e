/** The limit of fifty live children per agent, under concurrency (specification, Child identity). */
import { describe, expect, test } from 'vitest';
import { MAX_LIVE_CHILDREN } from '../../broker/admin/agents/children.ts';
import { newAgentId, uuidv4 } from '../../broker/crypto/ids.ts';
import type { Answer } from '../world/agent.ts';
import { childOf, issue, type TestChild } from '../world/child.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { refuseAuditRows } from '../world/faults.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { fresh, givenWorld, READ, shared } from '../world/world.ts';

const GRANTS = [{ platform: 'demo', scopes: ['demo:read'] }];

describe.each(STORES)(`the limit of children on %s${postgresNote}`, (store) => {
  // A connection for each concurrent request: those that wait for one for five seconds, on a busy machine, are refused with 503.
  const world = givenWorld(store, { DATABASE_CONNECTIONS: '32' });
  const organisation = shared(() => world.demoOrganisation());
  const parent = fresh(() => organisation.agent());
  const many = (count: number): Promise<Answer[]> =>
    Promise.all(Array.from({ length: count }, () => issue(parent, { ttl_seconds: 600, grants: GRANTS })));
  const statuses = (answers: readonly Answer[]) =>
    Object.fromEntries([...Map.groupBy(answers, ({ status }) => status)].map(([status, of]) => [status, of.length]));
  const counted = async () => {
    const of = await world.db
      .selectFrom('agents')
      .select('live_children')
      .where('id', '=', parent.id)
      .executeTakeFirst();
    return of!.live_children;
  };
  /** The expected counter, computed from the children. */
  const living = async () => {
    const children = await world.db.selectFrom('agents').selectAll().where('parent_id', '=', parent.id).execute();
    return children.filter(({ status }) => status === 'active' || status === 'suspended').length;
  };
  const full = async () => {
    const answer = await issue(parent, { grants: GRANTS });
    expectEnvelope(answer, 409, 'too_many_children');
    expect(answer.body.detail).toContain('50');
  };

  /** Creates a child, and copies of it without grants: issuing each would take a signature and four statements. */
  const childAmong = async (count: number, ttl_seconds = 600): Promise<TestChild> => {
    const child = await childOf(world, organisation, parent, { ttl_seconds });
    const row = await world.db.selectFrom('agents').selectAll().where('id', '=', child.id).executeTakeFirstOrThrow();
    const more = Array.from({ length: count - 1 }, () => {
      const [id, agent_id] = [uuidv4(), newAgentId()];
      return { ...row, id, agent_id, name: agent_id, key_fingerprint: id };
    });
    await world.db.insertInto('agents').values(more).execute();
    await world.db
      .updateTable('agents')
      .set((eb) => ({ live_children: eb('live_children', '+', count - 1) }))
      .where('id', '=', parent.id)
      .execute();
    return child;
  };

  test('of 24 that are issued concurrently for the last 12 slots 12 succeed, and the others leave nothing behind', async () => {
    await childAmong(MAX_LIVE_CHILDREN - 12);
    const answers = await many(24);
    expect(statuses(answers)).toEqual({ 201: 12, 409: 12 });
    expect([await counted(), await living()]).toEqual([MAX_LIVE_CHILDREN, MAX_LIVE_CHILDREN]);
    const grants = await world.db
      .selectFrom('grants')
      .innerJoin('agents', 'agents.id', 'grants.agent_id')
      .select('grants.id')
      .where('agents.parent_id', '=', parent.id)
      .execute();
    expect(grants).toHaveLength(1 + 12);
    await full();
    // The slots are counted per agent.
    expect((await issue(await organisation.agent())).status).toBe(201);
  });

  test('a slot is freed when a child is revoked, and not when it is suspended', async () => {
    const child = await childAmong(MAX_LIVE_CHILDREN - 1);
    expect((await issue(parent)).status).toBe(201);
    const move = (verb: string) => organisation.ask('POST', `/owner/agents/${child.agentId}/${verb}`, {});
    await move('suspend');
    await full();
    await move('resume');
    await full();
    await move('revoke');
    expect((await issue(parent)).status).toBe(201);
    await full();
    expectEnvelope(await move('revoke'), 409, 'conflict');
    expect([await counted(), await living()]).toEqual([MAX_LIVE_CHILDREN, MAX_LIVE_CHILDREN]);
  });

  test('a revocation that cannot be recorded frees no slot', async () => {
    const child = await childOf(world, organisation, parent);
    const again = await refuseAuditRows(world);
    const answer = await organisation.ask('POST', `/owner/agents/${child.agentId}/revoke`, {});
    expectEnvelope(answer, 503, 'audit_unavailable');
    expectEnvelope(await issue(parent), 503, 'audit_unavailable');
    await again();
    expect([await counted(), await living()]).toEqual([1, 1]);
    expect((await child.act(READ)).status).toBe(200);
  });

  test('slots of expired children are freed when needed, also with concurrent requests', async () => {
    await childAmong(MAX_LIVE_CHILDREN - 12);
    await childAmong(12, 60);
    world.clock.skewMs = 61_000;
    // No call since the expiry: the rows are not marked yet.
    expect(await living()).toBe(MAX_LIVE_CHILDREN);
    expect(statuses(await many(8))).toEqual({ 201: 8 });
    expect(await counted()).toBe(await living());
    expect(statuses(await many(12))).toEqual({ 201: 4, 409: 8 });
    expect([await counted(), await living()]).toEqual([MAX_LIVE_CHILDREN, MAX_LIVE_CHILDREN]);
  });

  test('issuing, revoking, calling and expiring concurrently: the counter is correct in the end', async () => {
    const first: TestChild[] = [];
    for (let n = 0; n < 10; n++) first.push(await childOf(world, organisation, parent, { ttl_seconds: 60 }));
    world.clock.skewMs = 61_000;
    await childAmong(MAX_LIVE_CHILDREN - 12);
    const answers = await Promise.all([
      ...first.map((child) => child.act(READ)),
      ...first.slice(0, 5).map((child) => organisation.ask('POST', `/owner/agents/${child.agentId}/revoke`, {})),
      many(24),
    ]);
    expect(answers.slice(0, 10).every((answer) => (answer as Answer).status === 403)).toBe(true);
    const issued = answers.at(-1) as Answer[];
    expect(new Set(issued.map(({ status }) => status))).toEqual(new Set([201, 409]));
    expect([await counted(), await living()]).toEqual([MAX_LIVE_CHILDREN, MAX_LIVE_CHILDREN]);
    for (const child of first) expect((await child.act(READ)).body.halt.state).toBe('revoked');
  });

  test('issuing races the revocation of the parent: whatever the result, no child can act', async () => {
    const [issued] = await Promise.all([
      many(10),
      organisation.ask('POST', `/owner/agents/${parent.agentId}/revoke`, {}),
    ]);
    for (const { status, body } of issued) {
      if (status === 403) expect(body.error).toBe('agent_not_active');
      else {
        expect(status).toBe(201);
        const answer = await parent.act(READ, { authorization: `Bearer ${body.bearer_token}` });
        expect([answer.status, answer.body.reason]).toEqual([403, 'agent_revoked']);
      }
    }
  });
});
