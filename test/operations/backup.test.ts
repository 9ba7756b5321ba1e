/** The documented backup of a broker in use. */
import { execFile } from 'node:child_process';
import { readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import { sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import { hashFile, readManifest } from '../../broker/store/backup-manifest.ts';
import { send, type TestAgent } from '../world/agent.ts';
import { BIN } from '../world/checkout.ts';
import { commandHost } from '../world/command.ts';
import { sized } from '../world/runner/thorough.ts';
import { smallDisk } from '../world/small-disk.ts';
import { query } from '../world/store-contents.ts';
import { newDatabase, newFolder, postgresNote, STORES } from '../world/stores.ts';
import { startWorld, type World } from '../world/world.ts';

const CHANGE = { platform: 'demo', endpoint: '/items/1', method: 'PATCH', scope: 'demo:write', data: { a: 1 } };
/** Some 25 or 50 MB: a copy in steps of 100 pages would restart hundreds of times while others write. */
const ROWS = sized(10_000, 20_000);

const run = promisify(execFile);
const host = commandHost();

/** Runs the command where nothing else happens meanwhile. Rejects as `run` does. */
async function backUp(
  words: readonly string[],
  env: Record<string, string>,
): Promise<{ stdout: string; stderr: string }> {
  const ran = await host(['backup', ...words], { cwd: newFolder(), env });
  if (ran.code !== 0) throw Object.assign(new Error(ran.stderr), ran);
  return ran;
}

/** Checks the manifest beside a backup: its checksum is the file's, and the command printed the same manifest. */
async function checkedManifest(file: string, answered: Record<string, unknown>) {
  const manifest = readManifest(file);
  expect(manifest).toMatchObject({ bytes: statSync(file).size, sha256: await hashFile(file) });
  expect(manifest.migrations).toContain('0001-foundation');
  expect(answered).toEqual({ file, manifest: `${file}.manifest.json`, ...manifest });
  return manifest;
}

/** Returns the time of the last backup as shown to owners and in the metrics. */
async function lastBackupShown(world: World): Promise<unknown[]> {
  const organisation = await world.organisation();
  const { body } = await organisation.ask('GET', '/owner/installation');
  const { text } = await send(`${world.running.baseUrl}/metrics`, {});
  return [body.last_backup_at, Number(/^agent_broker_last_backup_timestamp_seconds (\S+)$/m.exec(text)?.[1])];
}

describe('agent-broker backup', () => {
  let world: World;
  let agent: TestAgent;
  let environment: Record<string, string>;
  beforeAll(async () => {
    world = await startWorld('sqlite');
    const organisation = await world.organisation();
    await organisation.platform();
    agent = await organisation.agent();
    environment = world.environment;
    expect((await agent.act(CHANGE)).status).toBe(200);
    const row = await world.db
      .selectFrom('audit_rows')
      .selectAll()
      .where('kind', '=', 'action')
      .executeTakeFirstOrThrow();
    // Rows are copied within the store; each id is the row's with another random end.
    const columns = Object.keys(row).filter((name) => name !== 'id');
    const others = sql.join(columns.map((name) => sql.ref(name)));
    await sql`insert into audit_rows (id, ${others})
      with recursive copies(n) as (select 1 union all select n + 1 from copies where n < ${ROWS})
      select substr(id, 1, 24) || printf('%012x', n), ${others} from audit_rows, copies where id = ${row.id}`.execute(
      world.db,
    );
  });
  const backup = (file: string, env: Record<string, string> = {}, more: string[] = []) =>
    backUp([file, ...more], { AGENT_BROKER_DATA: environment.AGENT_BROKER_DATA!, ...env });
  /** In a process of its own, beside others. */
  const backupBeside = (file: string, more: string[] = []) =>
    run(process.execPath, [BIN, 'backup', file, ...more], {
      env: { PATH: process.env.PATH, AGENT_BROKER_DATA: environment.AGENT_BROKER_DATA },
    });

  test('finishes while calls are made, and contains every call answered before it', {
    timeout: 180_000,
  }, async () => {
    const file = join(newFolder(), 'backup.db');
    const before = (await agent.act(CHANGE)).body._meta.audit_id;
    let done = false;
    let calls = 0;
    const load = (async () => {
      while (!done) {
        expect((await agent.act(CHANGE)).status).toBe(200);
        calls++;
      }
    })();
    const { stdout } = await backupBeside(file);
    done = true;
    await load;
    expect(calls, 'calls meanwhile').toBeGreaterThan(5);
    expect(stdout).toMatch(/^Backed up the store into .*backup\.db \(\d+\.\d MB\)\./);
    for (const made of [file, `${file}.manifest.json`]) expect(statSync(made).mode & 0o777).toBe(0o600);
    expect(readdirSync(dirname(file)).toSorted()).toEqual(['backup.db', 'backup.db.manifest.json']);
    const copy = new DatabaseSync(file, { readOnly: true });
    expect(copy.prepare('select id from audit_rows where id = ?').all(before)).toHaveLength(1);
    copy.close();
  });

  test('creates no incomplete file, and overwrites none', async () => {
    const folder = newFolder();
    const file = join(folder, 'backup.db');
    const manifest = await checkedManifest(file, JSON.parse((await backup(file, {}, ['--json'])).stdout));
    expect(manifest).toMatchObject({ store: 'sqlite', master_key_check_value: expect.stringMatching(/./) });
    expect(manifest.rows.audit_rows).toBeGreaterThan(ROWS);
    expect(await lastBackupShown(world)).toEqual([manifest.made_at, Date.parse(manifest.made_at) / 1000]);
    const { size } = statSync(file);
    await expect(backup(file)).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('already exists') });
    expect(statSync(file).size).toBe(size);
    rmSync(file);
    rmSync(`${file}.manifest.json`);
    await expect(backup(file, { AGENT_BROKER_DATA: folder })).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no store'),
    });
    expect(readdirSync(folder)).toEqual([]);
    const missing = join(folder, 'none');
    await expect(backup(join(missing, 'backup.db'))).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`There is no folder ${missing}. Create it`),
    });
  });

  test('of two concurrent backups into one file one is complete, and the other is refused', {
    timeout: 180_000,
  }, async () => {
    const file = join(newFolder(), 'backup.db');
    const ended = await Promise.allSettled([backupBeside(file, ['--json']), backupBeside(file, ['--json'])]);
    const made = ended.filter((one) => one.status === 'fulfilled');
    const refused = ended.filter((one) => one.status === 'rejected');
    expect(refused.map(({ reason }) => reason.stderr)).toEqual([
      expect.stringMatching(/already exists\. Name a new file\.\n$/),
    ]);
    expect(readdirSync(dirname(file)).toSorted()).toEqual(['backup.db', 'backup.db.manifest.json']);
    for (const { value } of made) await checkedManifest(file, JSON.parse(value.stdout));
  });

  test('the partial file of a killed backup is removed after an hour, and that of a running one is kept', async () => {
    const folder = newFolder();
    const [left, journal, written] = ['1.partial', '1.partial-journal', '2.partial'].map((name) =>
      join(folder, `backup.db.${name}`),
    );
    for (const path of [left!, journal!, written!]) writeFileSync(path, 'half of a store');
    const before = new Date(Date.now() - 3_700_000);
    for (const path of [left!, journal!]) utimesSync(path, before, before);
    await backup(join(folder, 'backup.db'));
    expect(readdirSync(folder).toSorted()).toEqual(['backup.db', 'backup.db.2.partial', 'backup.db.manifest.json']);
  });

  const small = smallDisk(1024 * 1024);
  test.runIf(small)('onto a full disk names that disk, not that of the store, and leaves nothing there', async () => {
    await expect(backup(join(small!, 'backup.db'))).rejects.toMatchObject({
      code: 1,
      stderr: `The disk of ${small} is full. Make room there, then start again.\n`,
    });
    expect(readdirSync(small!)).toEqual([]);
  });

  test('an audit row takes little more than its bytes', async () => {
    const [{ page_size: bytes } = {}] = await query(environment, 'pragma page_size');
    expect(bytes).toBe(4_096);
    // Rows are queued in a separate table for the receipt log, and leave free pages there.
    const waiting = 'select count(*) as rows from log_pending';
    await expect.poll(async () => (await query(environment, waiting))[0]!.rows, { timeout: 30_000 }).toBe(0);
    const [pages] = await query(environment, 'pragma page_count');
    const [free] = await query(environment, 'pragma freelist_count');
    const used = Number(pages!.page_count) - Number(free!.freelist_count);
    // Includes the index by agent, the row's entry in the receipt log, and at least one page per table.
    expect((used * 4_096) / ROWS).toBeLessThan(1_450);
  });
});

describe.runIf(STORES.includes('postgres'))(`agent-broker backup of postgres${postgresNote}`, () => {
  test('dumps one snapshot while calls are made, with exactly the rows in its manifest', {
    timeout: 180_000,
  }, async () => {
    const world = await startWorld('postgres');
    const agent = await (await world.demoOrganisation()).agent();
    expect((await agent.act(CHANGE)).status).toBe(200);
    const file = join(newFolder(), 'backup.dump');
    const { DATABASE_URL = '', AGENT_BROKER_DATA = '' } = world.environment;
    let done = false;
    const load = (async () => {
      while (!done) expect((await agent.act(CHANGE)).status).toBe(200);
    })();
    const env = { PATH: process.env.PATH, DATABASE_URL, AGENT_BROKER_DATA, AGENT_BROKER_MASTER_KEY: 'not carried' };
    const { stdout } = await run(process.execPath, [BIN, 'backup', file, '--json'], { env });
    done = true;
    await load;
    const manifest = await checkedManifest(file, JSON.parse(stdout));
    expect(manifest.store).toBe('postgres');
    expect(await lastBackupShown(world)).toEqual([manifest.made_at, Date.parse(manifest.made_at) / 1000]);
    const copy = { DATABASE_URL: await newDatabase() };
    await run('pg_restore', [`--dbname=${copy.DATABASE_URL}`, '--exit-on-error', '--no-owner', file]);
    for (const [table, count] of Object.entries(manifest.rows))
      expect([table, await query(copy, `select count(*)::int as count from "${table}"`)]).toEqual([table, [{ count }]]);
  });

  test('of a read-only store is complete, and warns that its time could not be stored', async () => {
    const world = await startWorld('postgres');
    const file = join(newFolder(), 'backup.dump');
    const { DATABASE_URL = '', AGENT_BROKER_DATA = '' } = world.environment;
    const readOnly = `${DATABASE_URL}?options=${encodeURIComponent('-c default_transaction_read_only=on')}`;
    const { stdout, stderr } = await backUp([file, '--json'], { DATABASE_URL: readOnly, AGENT_BROKER_DATA });
    await checkedManifest(file, JSON.parse(stdout));
    expect(stderr).toContain('its time could not be recorded');
    expect(await lastBackupShown(world)).toEqual([null, 0]);
  });

  test('without pg_dump reports what to install, and leaves no file', async () => {
    const folder = newFolder();
    const env = { PATH: folder, DATABASE_URL: await newDatabase(), AGENT_BROKER_DATA: folder };
    await expect(backUp([join(folder, 'b')], env)).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /^There is no pg_dump here, and the server is PostgreSQL \d+\. Install .*postgresql-client-\d+/,
      ),
    });
    expect(readdirSync(folder)).toEqual([]);
  });
});
