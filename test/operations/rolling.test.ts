/** A rolling upgrade with a migration: two versions of the code on one PostgreSQL, under load, and the contract step after it. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { BalancedLoad, startBehind } from '../world/balanced-load.ts';
import { PROGRAMS } from '../world/checkout.ts';
import { NEXT_RELEASE, nextRelease, RELEASE } from '../world/next-release.ts';
import { query } from '../world/store-contents.ts';
import { newFolder, postgresNote, STORES } from '../world/stores.ts';
import { ALLOW_ALL, givenWorld, WRITE } from '../world/world.ts';

const run = promisify(execFile);
const exactly = (version: string): string => version.replaceAll('.', '\\.');

describe.runIf(STORES.includes('postgres'))(`a rolling upgrade on postgres${postgresNote}`, () => {
  let next: string;
  const world = givenWorld('postgres', { LOG_LEVEL: 'warn' });
  beforeAll(async () => {
    next = nextRelease();
  });

  const start = (folder: string) =>
    startBehind(world, {
      more: { AGENT_BROKER_KEY_FILE: world.running.broker.config.keyFile },
      program: join(folder, 'dist', 'child-broker.js'),
    });
  const contract = () =>
    run(process.execPath, [join(next, 'bin', 'agent-broker.js'), 'migrate', '--contract'], {
      env: { PATH: process.env.PATH, DATABASE_URL: world.environment.DATABASE_URL, AGENT_BROKER_DATA: newFolder() },
    });

  test('loses no call; the previous release may restart on the migrated store, until the contract step', {
    timeout: 360_000,
  }, async () => {
    const agent = await (await world.demoOrganisation({ rules: ALLOW_ALL })).agent({ rules: ALLOW_ALL });
    await world.running.stop();
    const load = new BalancedLoad();
    const first = load.add(await start(PROGRAMS));
    const second = load.add(await start(PROGRAMS));
    load.begin(agent, WRITE, () => ({}));
    try {
      load.add(await start(next));
      expect(await query(world.environment, `select name from kysely_migration where name > '0900'`)).toHaveLength(1);
      await load.stop(second);
      const again = load.add(await start(PROGRAMS));
      expect(again.process.output().stderr).toContain('a newer release has migrated the store');
      await expect(contract()).rejects.toMatchObject({
        code: 1,
        stderr: expect.stringMatching(
          new RegExp(
            `^2 brokers of an earlier release than ${exactly(NEXT_RELEASE)} still run .*${exactly(RELEASE)}.*Nothing was changed`,
          ),
        ),
      });
      load.add(await start(next));
      await load.stop(first);
      await load.stop(again);
      expect((await contract()).stdout).toBe('Contracted: 0001-shade.\n');
      expect(await start(PROGRAMS)).toMatch(
        new RegExp(
          `has the migration 0999-shade.*It can be used by ${exactly(NEXT_RELEASE)} and later, and this is ${exactly(RELEASE)}\\. Nothing was changed`,
        ),
      );
      await load.more(5);
      await load.end();
      expect((await contract()).stdout).toBe('The store is up to date.\n');
    } finally {
      load.kill();
    }
    expect(load.calls).toBeGreaterThan(20);
  });
});
