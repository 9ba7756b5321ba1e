/** The backup and restore commands of docs/deploy.md under Compose, run as written, with programs of this machine in place of containers. */
import { execFile } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { BIN, ROOT } from '../world/checkout.ts';
import { fencesOf } from '../world/markdown.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { query } from '../world/store-contents.ts';
import { administer, nameOf, newFolder, postgresNote, STORES } from '../world/stores.ts';
import { READ, startWorld } from '../world/world.ts';

const run = promisify(execFile);
const FENCES = fencesOf(readFileSync(join(ROOT, 'docs', 'deploy.md'), 'utf8'));
const fenceWith = (text: string) => FENCES.find((one) => one.text.includes(text))!.text;

/** A substitute for `docker`: runs on this machine what Compose runs in a container. The test itself starts and stops the broker. */
const DOCKER = `#!/bin/sh
case "$2" in
  exec) shift 2; [ "$1" = --no-TTY ] && shift; shift; exec "$@" ;;
  run) shift 5; exec "$NODE" "$BIN" "$@" ;;
esac
`;

describe.runIf(STORES.includes('postgres'))(`a backup from before an update${postgresNote}`, () => {
  test('is restored completely, without the tables and rows of the newer release', { timeout: 180_000 }, async () => {
    const world = await startWorld('postgres');
    const organisation = await world.demoOrganisation();
    expect((await (await organisation.agent()).act(READ)).status).toBe(200);
    const { DATABASE_URL = '' } = world.environment;
    const { hostname, port, username, password } = new URL(DATABASE_URL);
    const name = nameOf(DATABASE_URL);
    afterFile(() => administer(`drop database if exists ${name}_before with (force)`));
    const folder = newFolder();
    writeFileSync(join(folder, 'docker'), DOCKER);
    chmodSync(join(folder, 'docker'), 0o755);
    const asWritten = async (text: string) =>
      await run(
        'sh',
        [
          '-e',
          '-c',
          text.replaceAll('--username=broker', `--username=${username}`).replaceAll(/\bbroker(?!-\d)/g, name),
        ],
        {
          cwd: folder,
          env: {
            ...world.environment,
            PATH: `${folder}:${process.env.PATH}`,
            NODE: process.execPath,
            BIN,
            PGHOST: hostname,
            PGPORT: port,
            PGPASSWORD: password,
          },
        },
      );
    const names = async () => (await query(world.environment, 'select name from organisations')).map((one) => one.name);
    const before = await names();
    // Otherwise the heartbeat in the backup is recent, and the restore refuses because a broker seems to be running.
    await world.running.stop();
    await asWritten(fenceWith('pg_dump'));
    const later = `update organisations set name = 'later';
      create table later (organisation_id text references organisations(id));
      insert into later select id from organisations; insert into kysely_migration values ('9999-later', '')`;
    await query(world.environment, later);
    await asWritten(fenceWith('pg_restore'));
    expect(await names()).toEqual(before);
    expect(await query(world.environment, `select to_regclass('later') as later`)).toEqual([{ later: null }]);
    await world.restart();
    const refused = await organisation.ask('GET', '/owner/organisation');
    expect(refused.body.restored).not.toBe(null);
  });
});
