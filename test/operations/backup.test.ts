/** The documented backup, of a broker in use. */
import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { uuidv7 } from '../../broker/crypto/ids.ts';
import type { TestAgent } from '../world/agent.ts';
import { spawnBroker } from '../world/broker-process.ts';
import { BIN } from '../world/checkout.ts';
import { query } from '../world/stored.ts';
import { newFolder } from '../world/stores.ts';
import { startWorld, type World } from '../world/world.ts';

const CHANGE = { platform: 'demo', endpoint: '/items/1', method: 'PATCH', scope: 'demo:write', data: { a: 1 } };
/** Some 50 MB: a copy in steps of 100 pages begins again hundreds of times while others write. */
const ROWS = 20_000;

const run = promisify(execFile);

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
    const { db } = world.running.broker.store;
    const row = await db.selectFrom('audit_rows').selectAll().where('kind', '=', 'action').executeTakeFirstOrThrow();
    await db.transaction().execute(async (tx) => {
      const copies = Array.from({ length: ROWS }, () => ({ ...row, id: uuidv7(Date.now()) }));
      for (let at = 0; at < ROWS; at += 500)
        await tx
          .insertInto('audit_rows')
          .values(copies.slice(at, at + 500))
          .execute();
    });
  });
  const backup = (file: string, env: Record<string, string> = {}) =>
    run(process.execPath, [BIN, 'backup', file], {
      env: { PATH: process.env.PATH, AGENT_BROKER_DATA: environment.AGENT_BROKER_DATA, ...env },
    });

  test('finishes while calls go on, holds every answered call, and a broker serves from it', {
    timeout: 60_000,
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
    const { stdout } = await backup(file);
    done = true;
    await load;
    expect(calls, 'calls meanwhile').toBeGreaterThan(5);
    expect(stdout).toMatch(/^Backed up the store into .*backup\.db \(\d+\.\d MB\)\./);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(existsSync(`${file}.partial`)).toBe(false);
    const copy = new DatabaseSync(file, { readOnly: true });
    expect(copy.prepare('select id from audit_rows where id = ?').all(before)).toHaveLength(1);
    copy.close();

    // As the page says: into an empty data folder, with the key.
    const data = newFolder();
    mkdirSync(join(data, 'store'), { mode: 0o700 });
    copyFileSync(file, join(data, 'store', 'broker.db'));
    const restored = {
      ...environment,
      AGENT_BROKER_DATA: data,
      AGENT_BROKER_KEY_FILE: world.running.broker.config.keyFile,
    };
    const child = spawnBroker(restored);
    expect(await child.serve(), child.output().stderr).toBeDefined();
    child.signal('SIGTERM');
    await child.ended;
    expect(await query(restored, `select state from audit_rows where id = '${before}'`)).toEqual([{ state: 'final' }]);
  });

  test('makes no file that is not whole, and overwrites none', async () => {
    const folder = newFolder();
    const file = join(folder, 'backup.db');
    await backup(file);
    const { size } = statSync(file);
    await expect(backup(file)).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('already exists') });
    expect(statSync(file).size).toBe(size);
    rmSync(file);
    await expect(backup(file, { AGENT_BROKER_DATA: folder })).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no store'),
    });
    await expect(backup(file, { DATABASE_URL: 'postgres://x/y' })).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('pg_dump'),
    });
    expect(readdirSync(folder)).toEqual([]);
  });

  test('a new store has pages that hold several audit rows', async () => {
    const [{ page_size: bytes } = {}] = await query(environment, 'pragma page_size');
    expect(bytes).toBe(16_384);
    const [pages] = await query(environment, 'pragma page_count');
    expect((Number(pages!.page_count) * 16_384) / ROWS).toBeLessThan(1_300);
  });
});
