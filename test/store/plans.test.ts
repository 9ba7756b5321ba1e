/**
 * Frequent statements use an index, however much history there is (DOS-08). SQLite runs them in the broker's own thread, and plans by fixed rules,
 * whatever the tables hold, so its plans can be tested.
 */
import { join } from 'node:path';
import { CompiledQuery, sql } from 'kysely';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { uuidv7 } from '../../broker/crypto/ids.ts';
import { countOpenRequests, expireAccessRequests, findOpenRequest } from '../../broker/store/access-requests.ts';
import { activityOf } from '../../broker/store/agent-activity.ts';
import { INDEXED_ORDERS, pageOfAgents } from '../../broker/store/agent-pages.ts';
import { countPending, expireHeldCalls, listApprovalsOf } from '../../broker/store/approvals.ts';
import { findOrphanedIntents } from '../../broker/store/audit.ts';
import { type AuditFilter, findAuditRows } from '../../broker/store/audit-search.ts';
import { listOverdueChildren } from '../../broker/store/children.ts';
import { findOwnerOfSession, purgeEndedSessions } from '../../broker/store/ended-sessions.ts';
import { countGivenTokens, pageOfGivenTokens } from '../../broker/store/given-tokens.ts';
import { listHeldCalls } from '../../broker/store/held-calls.ts';
import { purgeIdempotencyKeys } from '../../broker/store/idempotency.ts';
import { countWaiting } from '../../broker/store/inbox.ts';
import { migrate } from '../../broker/store/migrate.ts';
import { findSignableApproval } from '../../broker/store/passkeys.ts';
import { openPostgres } from '../../broker/store/postgres/postgres.ts';
import { listStrandedClaims } from '../../broker/store/replays.ts';
import { openSqlite } from '../../broker/store/sqlite/sqlite.ts';
import type { Db, Store } from '../../broker/store/store.ts';
import { auditRow } from '../world/rows.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { newDatabase, newFolder, postgresNote, STORES } from '../world/stores.ts';
import { HOUR_MS } from '../world/times.ts';
import { shared } from '../world/world.ts';

const ORGANISATION = '00000000-0000-4000-8000-000000000001';
const AGENT = { organisationId: 'o', agentUuid: 'a' };
const PAGE = { limit: 50, now: 1 };
const LATELY = { since: 0, now: 1 };

const STATEMENTS: Record<string, (db: Db) => Promise<unknown>> = {
  'intents of dead processes, every 5 s': (db) => findOrphanedIntents(db, 100),
  'claims of dead processes, every 5 s': (db) => listStrandedClaims(db, 'i', 100),
  'held calls whose time is over, every minute': (db) => expireHeldCalls(db, 1),
  'access requests whose time is over, every minute': (db) => expireAccessRequests(db, 1),
  'access requests of an agent whose time is over': (db) => expireAccessRequests(db, 1, AGENT),
  'idempotency keys that are over, every minute': (db) => purgeIdempotencyKeys(db, 1),
  'what waits, after every change': (db) => countWaiting(db, 'o', 1),
  'pending actions': (db) => listApprovalsOf(db, 'o', 'a', { ...PAGE, since: 1 }),
  'how many calls of an agent wait': (db) => countPending(db, 'o', 'a', 1),
  'how many access requests of an agent wait': (db) => countOpenRequests(db, AGENT, 1),
  'the access request that waits already': (db) =>
    findOpenRequest(db, { ...AGENT, platformId: 'demo', scope: 'demo:read' }, 1),
  'the inbox': (db) => listHeldCalls(db, 'o', { ...PAGE, status: 'pending' }),
  'all held calls, by pages': (db) => listHeldCalls(db, 'o', PAGE),
  'a held call by its link': (db) => findSignableApproval(db, 'p'),
  'what agents did lately': (db) => activityOf(db, 'o', ['a', 'b'], LATELY),
  'rows with a text, which may be in the name of their agent': (db) =>
    findAuditRows(db, 'o', { text: 'x' }, { order: 'newest_first', limit: 50 }),
  'children whose time is over': (db) => listOverdueChildren(db, { organisationId: 'o', id: 'a' }, PAGE),
  'the owner of a session': (db) =>
    findOwnerOfSession(db, {
      organisationId: 'o',
      ownerId: 'w',
      marks: { id: 's', begunAt: 1, provider: { person: 'p', session: 'q', isOurs: true } },
    }),
  'the owner of a session that the provider did not name': (db) =>
    findOwnerOfSession(db, {
      organisationId: 'o',
      ownerId: 'w',
      marks: { id: 's', begunAt: 1, provider: { person: 'p', isOurs: true } },
    }),
};

const INDEXED = [...INDEXED_ORDERS];

/** Scans of the result of a limited select. */
const BOUNDED = new Set(['SCAN CONSTANT ROW', 'SCAN counted']);

/** Partial indexes of rows in progress only, which may be scanned completely. */
const SMALL = /USING (COVERING )?INDEX (audit_rows_intents|approvals_under_way)\b/;

describe('DOS-08 frequent statements', () => {
  const store = shared(() => openSqlite(join(newFolder(), 'store')));
  beforeAll(async () => {
    afterFile(() => store.close());
    await migrate(store);
  });

  /** Returns the steps of SQLite's query plan. */
  async function planOf(ask: (db: Db) => Promise<unknown>): Promise<string[]> {
    const spy = vi.spyOn(store.db.getExecutor(), 'executeQuery');
    await ask(store.db);
    const { sql, parameters } = spy.mock.calls[0]![0];
    spy.mockRestore();
    const explained = CompiledQuery.raw(`explain query plan ${sql}`, [...parameters]);
    return (await store.db.executeQuery<{ detail: string }>(explained)).rows.map(({ detail }) => detail);
  }
  const scans = (plan: readonly string[]) =>
    plan.filter((step) => step.startsWith('SCAN ') && !BOUNDED.has(step) && !SMALL.test(step));

  test.each(Object.entries(STATEMENTS))('%s', async (_name, ask) => {
    const plan = await planOf(ask);
    expect(plan).not.toEqual([]);
    expect(scans(plan)).toEqual([]);
  });

  test.each(INDEXED)(
    'pages of agents by %s, first and next, in both directions, use an index for their order',
    async (order) => {
      for (const descending of [true, false])
        for (const after of [undefined, { key: order === 'created' ? 1 : '0a', id: 'a' }]) {
          const page = { filter: {}, order, descending, after, limit: 50, endedBy: 1 };
          const plan = await planOf((db) => pageOfAgents(db, 'o', page));
          expect(scans(plan)).toEqual([]);
          expect(plan.filter((step) => step.includes('TEMP B-TREE'))).toEqual([]);
        }
    },
  );

  test.each([undefined, { created_at: 1, id: 'a' }])(
    'pages of tokens of people, after %j, use an index for their order, and their counts read nothing else',
    async (after) => {
      const plan = await planOf((db) => pageOfGivenTokens(db, 'o', { standing: 'kept', after, limit: 50 }));
      expect(scans(plan)).toEqual([]);
      expect(plan.filter((step) => step.includes('TEMP B-TREE'))).toEqual([]);
      expect((await planOf((db) => countGivenTokens(db, 'o'))).join()).toContain('COVERING INDEX person_tokens_listed');
    },
  );

  test('the twin: agents by last call need a sort', async () => {
    const page = { filter: {}, order: 'last_call', descending: true, limit: 50, endedBy: 1 } as const;
    expect((await planOf((db) => pageOfAgents(db, 'o', page))).join()).toContain('TEMP B-TREE FOR ORDER BY');
  });

  test('the twin: a full scan is detected', async () => {
    expect(scans(await planOf((db) => purgeEndedSessions(db, 1)))).toEqual(['SCAN ended_sessions']);
  });
});

const LATE = Date.parse('2026-11-20T00:00:00Z');
/** More rows than one query scans. */
const ROWS = 6_000;
const IDS = Array.from({ length: ROWS }, (_, at) => uuidv7(LATE + at * 1000));

const FILTERS: [string, AuditFilter][] = [
  ['a reason', { reason: 'scope_not_granted' }],
  ['a reason, since', { reason: 'scope_not_granted', since: LATE }],
  ['a reason, until', { reason: 'scope_not_granted', until: LATE + HOUR_MS }],
  ['a reason, since and until', { reason: 'scope_not_granted', since: LATE, until: LATE + HOUR_MS }],
  ['since and until', { since: LATE, until: LATE + HOUR_MS }],
];

describe.each(STORES)(`a search of audit rows on %s${postgresNote}`, (kind) => {
  const store = shared(async () =>
    kind === 'sqlite'
      ? openSqlite(join(newFolder(), 'store'))
      : openPostgres(await newDatabase(), { connections: 4, onError: () => {} }),
  );
  beforeAll(async () => {
    afterFile(() => store.close());
    await migrate(store);
    const rows = IDS.map((id, at) => auditRow({ organisation_id: ORGANISATION, id, created_at: LATE + at * 1000 }));
    for (let at = 0; at < ROWS; at += 500)
      await store.db
        .insertInto('audit_rows')
        .values(rows.slice(at, at + 500))
        .execute();
    if (kind === 'postgres') await sql`vacuum analyze audit_rows`.execute(store.db);
  });

  test.each(
    FILTERS.flatMap(([name, filter]) =>
      (['newest_first', 'oldest_first'] as const).flatMap((order) =>
        [undefined, IDS[3_000]].map((beyond) => [name, order, beyond ? 'a next page' : 'a first page', filter, beyond]),
      ),
    ) as [string, 'newest_first' | 'oldest_first', string, AuditFilter, string | undefined][],
  )('%s, %s, %s: reads 2,000 rows at most', async (_name, order, _page, filter, beyond) => {
    const spy = vi.spyOn(store.db.getExecutor(), 'executeQuery');
    const found = await findAuditRows(store.db, ORGANISATION, filter, { order, beyond, limit: 50 });
    const asked = spy.mock.calls.map(([query]) => query);
    spy.mockRestore();
    expect(asked.length).toBeGreaterThan(0);
    if (filter.reason !== undefined) expect(found.rows).toEqual([]);
    for (const { sql: text, parameters } of asked) {
      // SQLite uses only the first bound on each side for the index, and tests any other on every row.
      expect(text.match(/"id" >=? /g)?.length ?? 0, text).toBeLessThan(2);
      expect(text.match(/"id" <=? /g)?.length ?? 0, text).toBeLessThan(2);
      if (kind === 'postgres') expect(await rowsRead(store, text, parameters)).toBeLessThanOrEqual(2_000);
    }
  });
});

/** Returns how many rows PostgreSQL reads from the table or its index. */
async function rowsRead(store: Store, text: string, parameters: readonly unknown[]): Promise<number> {
  type Node = { 'Node Type': string; 'Actual Rows': number; 'Rows Removed by Filter'?: number; Plans?: Node[] };
  const explained = CompiledQuery.raw(`explain (analyze, format json) ${text}`, [...parameters]);
  const { rows } = await store.db.transaction().execute(async (tx) => {
    // PostgreSQL would rather scan a table as small as this one.
    await sql`set local enable_seqscan = off; set local enable_bitmapscan = off`.execute(tx);
    return await tx.executeQuery<{ 'QUERY PLAN': [{ Plan: Node }] }>(explained);
  });
  const read = (node: Node): number =>
    /Scan/.test(node['Node Type'])
      ? node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)
      : (node.Plans ?? []).reduce((sum, child) => sum + read(child), 0);
  return read(rows[0]!['QUERY PLAN'][0].Plan);
}
