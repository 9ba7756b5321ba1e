/** Statistics of calls: counted in the background, exactly once, including new calls, and read from the counters. */
import { sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import { countActivity, outcomeOf } from '../../broker/admin/activity/count-activity.ts';
import { bucketsOf } from '../../broker/admin/activity/time-buckets.ts';
import { momentOf, uuidv7 } from '../../broker/crypto/ids.ts';
import { decisionTimes } from '../../broker/store/activity-counts.ts';
import type { AuditRow } from '../../broker/store/audit.ts';
import { expectStatus } from '../world/agent.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { auditRow } from '../world/rows.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { HOUR_MS } from '../world/times.ts';
import { givenWorld, type Organisation, READ, shared, WRITE } from '../world/world.ts';

const DAY_MS = 24 * HOUR_MS;

describe('time ranges', () => {
  test('24 hours are 24 buckets, the last one incomplete', () => {
    const until = Date.parse('2026-11-22T10:20:00Z');
    const { starts, startOf } = bucketsOf('hour', 'UTC', { since: until - DAY_MS, until });
    expect(starts).toHaveLength(24);
    expect(starts.at(-1)).toBe(Date.parse('2026-11-22T10:00:00Z'));
    expect(startOf(until)).toBe(starts.at(-1));
    expect(startOf(starts[0]! - 1)).toBeUndefined();
  });

  test('days are those of the time zone, also across a daylight saving change', () => {
    const until = Date.parse('2026-11-05T12:00:00Z');
    const { starts, startOf } = bucketsOf('day', 'America/New_York', { since: until - 30 * DAY_MS, until });
    expect(starts).toHaveLength(30);
    expect(new Date(starts.at(-1)!).toISOString()).toBe('2026-11-05T05:00:00.000Z');
    // On 1 November the day began an hour earlier by UTC, and had 25 hours.
    expect(new Date(starts.at(-5)!).toISOString()).toBe('2026-11-01T04:00:00.000Z');
    expect(startOf(Date.parse('2026-11-02T04:30:00Z'))).toBe(starts.at(-5));
  });

  test('weeks begin on Monday', () => {
    const until = Date.parse('2026-11-22T10:00:00Z');
    const { starts } = bucketsOf('week', 'UTC', { since: until - 364 * DAY_MS, until });
    expect(starts).toHaveLength(52);
    expect(new Date(starts.at(-1)!).toISOString()).toBe('2026-11-16T00:00:00.000Z');
  });

  test('an id contains its time', () => expect(momentOf(uuidv7(1_795_161_224_123))).toBe(1_795_161_224_123));
});

test.each([
  [{ result: 'allowed', upstream_status: 200 }, 'allowed'],
  [{ result: 'allowed', upstream_status: 404 }, 'failed'],
  [{ result: 'allowed', upstream_status: 200, flags: '{"failed":true}' }, 'failed'],
  [{ result: 'held', approval_id: 'x' }, 'held'],
  [{ result: 'allowed', upstream_status: 201, approval_id: 'x' }, 'made'],
  [{ result: 'errored', approval_id: 'x' }, 'made_failed'],
  [{ result: 'denied' }, 'denied'],
  [{ result: 'denied', approval_id: 'x' }, undefined],
  [{ result: 'blocked', approval_id: 'x' }, undefined],
  [{ state: 'intent', result: null }, 'allowed'],
  [{ kind: 'event' }, undefined],
] as [Partial<AuditRow>, string | undefined][])('%j is counted as %s', (row, outcome) => {
  expect(outcomeOf(auditRow({ state: 'final', ...row }))).toBe(outcome);
});

describe.each(STORES)(`statistics of calls on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent({ name: 'triage' }));
  const stats = async (query: string, of: Organisation = organisation) => {
    // Statistics are cached for some seconds.
    world.clock.skewMs += 20_000;
    const { body } = await expectStatus(200, of.ask('GET', `/owner/stats?${query}`));
    return body;
  };
  const count = () => countActivity(world.running.broker, world.running.broker.clock());
  const put = async (of: Organisation, rows: Partial<AuditRow>[]) => {
    const made = rows.map((row) =>
      auditRow({
        organisation_id: of.id,
        state: 'final',
        kind: 'event',
        finished_at: 1,
        row_hash: 'x',
        receipt: 'x',
        ...row,
      }),
    );
    for (let at = 0; at < made.length; at += 200)
      await world.db
        .insertInto('audit_rows')
        .values(made.slice(at, at + 200))
        .execute();
  };
  beforeAll(async () => {
    for (let at = 0; at < 3; at++) await agent.act(READ);
    await agent.act({ ...READ, scope: 'demo:nonsense' });
    world.upstream.answer = (_request, response) => response.writeHead(500).end('{}');
    await agent.act(READ);
    world.upstream.answer = undefined;
    const { body } = await agent.act(WRITE);
    await agent.act(WRITE);
    world.clock.skewMs += 90_000;
    const held = (await organisation.ask('GET', `/owner/approvals/${body.approval_id}`)).body;
    await organisation.approve(body.approval_id, { request_hash: held.request_hash });
  });
  const EXPECTED = { calls: 7, allowed: 3, held: 2, refused: 1, errored: 1 };

  test('new calls are included immediately, before anything was counted', async () => {
    const told = await stats('range=day');
    expect(told.totals).toEqual(EXPECTED);
    expect(told.counted_until).toBe(told.until);
    expect(told.buckets).toHaveLength(24);
    expect(told.decisions).toMatchObject({ count: 1, sampled: false });
    expect(told.decisions.p50_seconds).toBeGreaterThanOrEqual(90);
    expect(told.decisions.p50_seconds).toBeLessThan(120);
    expect(told.agents).toMatchObject([{ agent_id: agent.agentId, name: 'triage', ...EXPECTED }]);
    expect(told.platforms).toEqual([{ platform: 'demo', sent: 5, failed: 1 }]);
  });

  test('an approved call that the broker then refused is no failure of the platform', async () => {
    const of = await world.demoOrganisation();
    const held = await of.agent({ name: 'limited' });
    const { body } = await held.act(WRITE);
    await expectStatus(200, of.ask('POST', `/owner/agents/${held.id}/grants/demo`, { scopes: ['demo:read'] }));
    const { request_hash } = (await of.ask('GET', `/owner/approvals/${body.approval_id}`)).body;
    await of.approve(body.approval_id, { request_hash });
    const { rows } = (await of.ask('GET', '/owner/audit?kind=action')).body;
    expect(rows.map(({ result }: AuditRow) => result)).toEqual(['denied', 'held']);
    const told = await stats('range=day', of);
    expect(told.totals).toEqual({ calls: 1, allowed: 0, held: 1, refused: 0, errored: 0 });
    expect(told.platforms).toEqual([]);
  });

  test('decision times are marked as a sample when there are more held calls, even if some are pending', async () => {
    const span = { since: 0, until: world.running.broker.clock() + DAY_MS };
    const of = async (limit: number) => {
      const { decided, isCut } = await decisionTimes(world.db, organisation.id, span, limit);
      return [decided.length, isCut];
    };
    // The newer one of the two is pending.
    expect([await of(1), await of(3)]).toEqual([
      [0, true],
      [1, false],
    ]);
  });

  test.each(['day', 'week', 'month', 'year'])(
    'calls are counted once, however often and by however many counters: range %s',
    async (range) => {
      // The clock is set again for each test, and one call was made in its future.
      world.clock.skewMs += 6 * 60_000;
      await Promise.all([count(), count(), count()]);
      await count();
      const told = await stats(`range=${range}&zone=Europe/Berlin`);
      expect(told.totals).toEqual(EXPECTED);
      expect(told.agents).toMatchObject([EXPECTED]);
      const { rows } = await sql<{
        calls: number;
      }>`select sum(calls) as calls from activity_counts where dimension = 'platform_hour' and organisation_id = ${organisation.id}`.execute(
        world.db,
      );
      // The seven, and the replay of an approved call.
      expect(Number(rows[0]!.calls)).toBe(8);
      expect(told.buckets.reduce((sum: number, { calls }: { calls: number }) => sum + calls, 0)).toBe(7);
      await agent.act(READ);
      EXPECTED.calls++;
      EXPECTED.allowed++;
      expect((await stats(`range=${range}`)).totals).toEqual(EXPECTED);
      await sql`delete from audit_rows where id = (select max(id) from audit_rows where organisation_id = ${organisation.id} and kind = 'action')`.execute(
        world.db,
      );
      EXPECTED.calls--;
      EXPECTED.allowed--;
    },
  );

  test('a call in flight stops the count before it, for a quarter of an hour', async () => {
    const fresh = await world.organisation();
    const now = world.running.broker.clock();
    const open = { kind: 'action', state: 'intent', id: uuidv7(now), result: null } as const;
    await put(fresh, [open, { kind: 'action', result: 'denied', id: uuidv7(now + 1) }]);
    const counted = async () =>
      (
        await sql<{ row_id: string }>`select row_id from activity_counted where organisation_id = ${fresh.id}`.execute(
          world.db,
        )
      ).rows;
    world.clock.skewMs += 5 * 60_000;
    await count();
    expect(await counted()).toEqual([]);
    expect((await stats('range=day', fresh)).totals).toMatchObject({ calls: 2, allowed: 1, refused: 1 });
    world.clock.skewMs += 15 * 60_000;
    await count();
    expect(await counted()).toHaveLength(1);
    expect((await stats('range=day', fresh)).totals).toMatchObject({ calls: 2, allowed: 1, refused: 1 });
  });

  test('with very many new rows the statistics end where the counters do, and say so', async () => {
    const fresh = await world.organisation();
    const begun = world.running.broker.clock() - 10_000;
    await put(
      fresh,
      Array.from({ length: 3_001 }, (_, at) => ({
        kind: 'action' as const,
        result: 'denied' as const,
        id: uuidv7(begun + at),
      })),
    );
    expect(await stats('range=day', fresh)).toMatchObject({ counted_until: null, totals: { calls: 0 } });
    world.clock.skewMs += 4 * 60_000;
    await count();
    expect(await stats('range=day', fresh)).toMatchObject({ totals: { calls: 3_001, refused: 3_001 } });
  });

  test('invalid parameters are refused; nothing of another organisation is returned', async () => {
    for (const query of ['range=century', 'zone=Mars/Olympus', `zone=${'x'.repeat(65)}`])
      expectEnvelope(await organisation.ask('GET', `/owner/stats?${query}`), 400, 'invalid_request');
    const viewer = await organisation.addOwner('viewer');
    expect((await organisation.ask('GET', '/owner/stats', undefined, viewer)).body.totals.calls).toBe(7);
    const other = await world.organisation();
    expect(await stats('range=year', other)).toMatchObject({
      totals: { calls: 0 },
      agents: [],
      platforms: [],
      decisions: { count: 0, p50_seconds: null },
    });
  });
});
