/**
 * What is asked again and again goes by an index, however much history there is (DOS-08). SQLite answers in the broker's own
 * thread, and by rules alone, whatever the tables hold: its plans can be tested.
 */
import { join } from 'node:path';
import { CompiledQuery } from 'kysely';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { countOpenRequests, expireAccessRequests, findOpenRequest } from '../../broker/store/access-requests.ts';
import { countPending, expireHeldCalls, listApprovalsOf } from '../../broker/store/approvals.ts';
import { findOrphanedIntents } from '../../broker/store/audit.ts';
import { listOverdueChildren } from '../../broker/store/children.ts';
import { findOwnerOfSession, purgeEndedSessions } from '../../broker/store/ended-sessions.ts';
import { listHeldCalls } from '../../broker/store/held-calls.ts';
import { purgeIdempotencyKeys } from '../../broker/store/idempotency.ts';
import { countWaiting } from '../../broker/store/inbox.ts';
import { migrate } from '../../broker/store/migrate.ts';
import { findSignableApproval } from '../../broker/store/passkeys.ts';
import { listStrandedClaims } from '../../broker/store/replays.ts';
import { openSqlite } from '../../broker/store/sqlite.ts';
import type { Db, Store } from '../../broker/store/store.ts';
import { afterFile } from '../world/after-file.ts';
import { newFolder } from '../world/stores.ts';

const AGENT = { organisationId: 'o', agentUuid: 'a' };
const PAGE = { limit: 50, now: 1 };

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
  'children whose time is over': (db) => listOverdueChildren(db, { organisationId: 'o', id: 'a' }, PAGE),
  'the owner of a session': (db) => findOwnerOfSession(db, { organisationId: 'o', ownerId: 'w', sessionId: 's' }),
};

/** Indexes that hold only what is under way: going through all of one is what it is for. */
const SMALL = /USING (COVERING )?INDEX (audit_rows_intents|approvals_under_way)\b/;

describe('statements that are asked again and again', () => {
  let store: Store;
  beforeAll(async () => {
    store = openSqlite(join(newFolder(), 'store'));
    afterFile(() => store.close());
    await migrate(store);
  });

  /** How SQLite does it, step for step. */
  async function planOf(ask: (db: Db) => Promise<unknown>): Promise<string[]> {
    const spy = vi.spyOn(store.db.getExecutor(), 'executeQuery');
    await ask(store.db);
    const { sql, parameters } = spy.mock.calls[0]![0];
    spy.mockRestore();
    const explained = CompiledQuery.raw(`explain query plan ${sql}`, [...parameters]);
    return (await store.db.executeQuery<{ detail: string }>(explained)).rows.map(({ detail }) => detail);
  }
  const scans = (plan: readonly string[]) =>
    plan.filter((step) => step.startsWith('SCAN ') && step !== 'SCAN CONSTANT ROW' && !SMALL.test(step));

  test.each(Object.entries(STATEMENTS))('%s', async (_name, ask) => {
    const plan = await planOf(ask);
    expect(plan).not.toEqual([]);
    expect(scans(plan)).toEqual([]);
  });

  test('the twin: one that goes through everything is seen', async () => {
    expect(scans(await planOf((db) => purgeEndedSessions(db, 1)))).toEqual(['SCAN ended_sessions']);
  });
});
