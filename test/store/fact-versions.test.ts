/** The fact version of an organisation: every change that decisions depend on renews it, in the transaction of the change. */
import { setTimeout } from 'node:timers/promises';
import { sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import { BREAKER_LIMITS } from '../../broker/policy/breaker.ts';
import { strike } from '../../broker/store/breakers.ts';
import { prepareFacts } from '../../broker/store/facts.ts';
import { factsReaders } from '../../broker/store/facts-reader.ts';
import { changeInBulk, findGovernanceVersion } from '../../broker/store/governance.ts';
import { updateOrganisation } from '../../broker/store/organisations.ts';
import { openPostgres } from '../../broker/store/postgres/postgres.ts';
import type { Store } from '../../broker/store/store.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { givenWorld, shared } from '../world/world.ts';

const HERE = '127.0.0.1';
const ELSEWHERE = '198.51.100.7';

/** Columns that identify a row, and never change. */
const IDENTITY = ['organisation_id', 'id'];
const KEYS: Record<string, readonly string[]> = {
  organisations: IDENTITY,
  agents: IDENTITY,
  policies: IDENTITY,
  grants: IDENTITY,
  connections: IDENTITY,
  platforms: ['organisation_id', 'platform_id'],
  breakers: ['organisation_id', 'agent_id', 'cause', 'key'],
};

describe.each(STORES)(`versions of facts on %s${postgresNote}`, (kind) => {
  let store: Store;
  const world = givenWorld(kind);
  const organisation = shared(() => world.demoOrganisation());
  beforeAll(() => {
    ({ store } = world.running.broker);
  });

  const version = async () =>
    (
      await store.db
        .selectFrom('fact_versions')
        .select('version')
        .where('organisation_id', '=', organisation.id)
        .executeTakeFirstOrThrow()
    ).version;

  /** Returns the names of the statements that a read executed. */
  async function asked(read: () => Promise<unknown>): Promise<string[]> {
    const names: string[] = [];
    const { read: original } = store;
    store.read = (statement, values) => {
      names.push(statement.name);
      return original(statement, values);
    };
    try {
      await read();
    } finally {
      store.read = original;
    }
    return names;
  }

  test('every column that facts are read from is watched by a trigger', async () => {
    const triggers = await store.db.executeQuery<{ table: string; definition: string }>(
      (kind === 'sqlite'
        ? sql`select tbl_name as "table", sql as definition from sqlite_master where type = 'trigger'`
        : sql`select tgrelid::regclass::text as "table", pg_get_triggerdef(oid) as definition from pg_trigger
            where not tgisinternal`
      ).compile(store.db) as never,
    );
    const watched = (table: string, event: string) =>
      triggers.rows.filter(
        (one) =>
          one.table === table &&
          one.definition.includes('fact_version_') &&
          new RegExp(`after ${event}`, 'i').test(one.definition),
      );
    const { sql: text } = prepareFacts(store.db, 'one_platform', { many: false, scope: 'family' });
    const plain = text.replaceAll('"', '');
    const tables = new Map(
      Array.from(plain.matchAll(/join (\w+) as (\w+) on/g), ([, table, alias]) => [alias, table!]),
    );
    expect([...new Set(tables.values())].sort()).toEqual([...Object.keys(KEYS), 'fact_versions'].sort());
    const columns = new Set<string>();
    for (const [, alias, column] of plain.matchAll(/\b([a-z]+)\.([a-z_]+)\b/g))
      if (tables.has(alias!)) columns.add(`${tables.get(alias!)}.${column}`);
    expect(columns.size).toBeGreaterThan(45);
    for (const each of columns) {
      const [table, column] = each.split('.') as [string, string];
      if (table === 'fact_versions' || KEYS[table]!.includes(column)) continue;
      const definitions = watched(table, 'update').map(({ definition }) => definition);
      expect([each, definitions.some((definition) => new RegExp(`old\\.${column}\\b`, 'i').test(definition))]).toEqual([
        each,
        true,
      ]);
    }
    for (const table of Object.keys(KEYS).filter((name) => name !== 'organisations'))
      for (const event of ['insert', 'delete'])
        expect([table, event, watched(table, event).length]).toEqual([table, event, 1]);
  });

  test('a committed change renews the version, and a rolled back one does not', async () => {
    const before = await version();
    const change = { approval_ttl_ms: 123_456 };
    await expect(
      store.db.transaction().execute(async (db) => {
        await updateOrganisation(db, organisation.id, change);
        throw new Error('taken back');
      }),
    ).rejects.toThrow('taken back');
    expect(await version()).toBe(before);
    await updateOrganisation(store.db, organisation.id, change);
    const after = await version();
    expect(after).not.toBe(before);
    // The same values again: nothing changes.
    await updateOrganisation(store.db, organisation.id, change);
    expect(await version()).toBe(after);
  });

  test('a bulk change renews the versions of facts and of governance at its end', async () => {
    const agent = await organisation.agent();
    const before = await version();
    const governed = await findGovernanceVersion(store.db, organisation.id);
    const renamed = (name: string) => store.db.updateTable('agents').set({ name }).where('id', '=', agent.id);
    await store.db.transaction().execute((db) =>
      changeInBulk(db, organisation.id, async () => {
        await db.executeQuery(renamed('renamed in bulk').compile());
      }),
    );
    const after = await version();
    expect(after).not.toBe(before);
    expect(await findGovernanceVersion(store.db, organisation.id)).not.toBe(governed);
    await renamed('renamed alone').execute();
    expect(await version()).not.toBe(after);
  });

  test('a bulk change that does not renew the versions cannot commit', async () => {
    const before = await version();
    const forgotten = store.db.transaction().execute(async (db) => {
      await db.insertInto('bulk_changes').values({ organisation_id: organisation.id, never: '' }).execute();
      await updateOrganisation(db, organisation.id, { approval_ttl_ms: 234_567 });
    });
    await expect(forgotten).rejects.toThrow(/foreign key/i);
    expect(await version()).toBe(before);
  });

  test.runIf(kind === 'postgres')(
    'a version restored from a dump is renewed even if the current transaction has the same id',
    async () => {
      let restored = '';
      await store.db.transaction().execute(async (db) => {
        const { rows } = await sql<{ id: string }>`select pg_current_xact_id()::text as id`.execute(db);
        restored = `${rows[0]!.id} ${crypto.randomUUID()}`;
        await store.db
          .updateTable('fact_versions')
          .set({ version: restored })
          .where('organisation_id', '=', organisation.id)
          .execute();
        await updateOrganisation(db, organisation.id, { approval_ttl_ms: 123_789 });
      });
      expect(await version()).not.toBe(restored);
    },
  );

  test('other organisations, strikes on a closed breaker and counts of children do not renew the version', async () => {
    const agent = await organisation.agent();
    const other = await world.organisation();
    await other.platform();
    const before = await version();
    const limits = { ...BREAKER_LIMITS.breaker_api_error, strikes: 2 };
    const breaker = {
      organisation_id: organisation.id,
      agent_id: agent.id,
      cause: 'breaker_api_error',
      key: '',
    } as const;
    await strike(store.db, breaker, limits, Date.now());
    await store.db.updateTable('agents').set({ live_children: 1 }).where('id', '=', agent.id).execute();
    await updateOrganisation(store.db, other.id, { approval_ttl_ms: 654_321 });
    expect(await version()).toBe(before);
    await strike(store.db, breaker, limits, Date.now());
    expect(await version()).not.toBe(before);
  });

  test('facts are read once per version, agent, platform and address; otherwise only the version is read', async () => {
    const agent = await organisation.agent();
    const read = factsReaders(store).own;
    const from = (source: string) => () => read(agent.agentId, 'demo', source);
    expect(await asked(from(HERE))).toEqual(['facts_one_platform_own']);
    expect(await asked(from(HERE))).toEqual(['fact_version']);
    expect(await asked(() => Promise.all([from(HERE)(), from(HERE)(), from(HERE)()]))).toEqual(['fact_version']);
    expect(await asked(from(ELSEWHERE))).toEqual(['facts_one_platform_own']);
    expect(await asked(from(HERE))).toEqual(['fact_version']);
    expect(await asked(from(ELSEWHERE))).toEqual(['fact_version']);
    await updateOrganisation(store.db, organisation.id, { approval_ttl_ms: 777_777 });
    expect(await asked(from(HERE))).toEqual(['fact_version', 'facts_one_platform_own']);
    expect(await asked(from(HERE))).toEqual(['fact_version']);
  });

  test('the cached rows are available while the store checks their version', async () => {
    const agent = await organisation.agent();
    // On a busy machine PostgreSQL may answer before the callback runs, so its answer is delayed here.
    const slow: Store['read'] = async (...asked) => {
      await setTimeout(20);
      return await store.read(...asked);
    };
    const read = factsReaders(kind === 'sqlite' ? store : { ...store, read: slow }).own;
    const ask = async () => {
      const likely: unknown[] = [];
      const rows = await read(agent.agentId, 'demo', HERE, (each) => {
        likely.push(each);
        throw new Error('nobody’s business');
      });
      return { likely, rows };
    };
    const first = await ask();
    expect(first.likely).toEqual([]);
    const again = await ask();
    // SQLite answers synchronously.
    expect(again.likely).toEqual(kind === 'sqlite' ? [] : [first.rows]);
    await store.db.updateTable('agents').set({ status: 'suspended' }).where('id', '=', agent.id).execute();
    const changed = await ask();
    expect(changed.likely).toEqual(again.likely);
    expect(changed.rows[0]!.status).toBe('suspended');
  });

  test('a breaker open for one address affects only that address, whatever is cached', async () => {
    const agent = await organisation.agent();
    const read = factsReaders(store).own;
    const openUntil = async (source: string) => (await read(agent.agentId, 'demo', source))[0]!.auth_open_until;
    for (const source of [HERE, ELSEWHERE, HERE]) expect(await openUntil(source)).toBeNull();
    await strike(
      store.db,
      { organisation_id: organisation.id, agent_id: agent.id, cause: 'breaker_auth_failure', key: ELSEWHERE },
      { ...BREAKER_LIMITS.breaker_auth_failure, strikes: 1 },
      Date.now(),
    );
    for (let again = 0; again < 2; again++) {
      expect(await openUntil(HERE)).toBeNull();
      expect(await openUntil(ELSEWHERE)).toBeTypeOf('number');
    }
  });

  test('a committed change is in the next read of every process, during concurrent changes', async () => {
    const other =
      kind === 'sqlite'
        ? store
        : openPostgres(world.running.broker.config.databaseUrl!.reveal(), { connections: 6, onError: () => {} });
    if (other !== store) afterFile(() => other.close());
    const readers = [factsReaders(store).own, factsReaders(other).family];
    const agents = await Promise.all(Array.from({ length: 6 }, () => organisation.agent()));
    const stale: string[] = [];
    await Promise.all(
      agents.map(async ({ agentId }, writer) => {
        for (let step = 1; step <= 40; step++) {
          const name = `${writer} at ${step}`;
          const { db } = step % 2 ? store : other;
          await db.updateTable('agents').set({ name }).where('agent_id', '=', agentId).execute();
          for (const read of readers) {
            const [row] = await read(agentId, 'demo', HERE);
            if (row?.name !== name) stale.push(`${row?.name} instead of ${name}`);
          }
        }
      }),
    );
    expect(stale).toEqual([]);
  });
});
