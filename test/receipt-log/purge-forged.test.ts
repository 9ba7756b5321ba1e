/** A person who can only write to the database, without any key, can get rows logged and covered by checkpoints. That proves no deletion. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { uuidv7 } from '../../broker/crypto/ids.ts';
import { HASHED_COLUMNS } from '../../broker/store/audit-columns.ts';
import { commandHost } from '../world/command.ts';
import { newFolder, ONE_STORE, postgresNote } from '../world/stores.ts';
import { fresh, givenWorld, READ } from '../world/world.ts';
import { readAsOwner, settledLog } from './read-log.ts';
import { hashOf } from './tampered.ts';

const hosted = commandHost();

describe.each(ONE_STORE)(`events written into the database on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation());
  const fetched = (path: string) => readAsOwner(world, organisation, path);
  const settled = (atLeast: number) => settledLog(organisation, atLeast);
  const rowsThere = async () =>
    await world.db
      .selectFrom('audit_rows')
      .selectAll()
      .where('organisation_id', '=', organisation.id)
      .orderBy('id')
      .execute();
  type AuditRow = Awaited<ReturnType<typeof rowsThere>>[number];
  /** Writes a row like that of a change, with its signature. */
  const write = async (more: Partial<AuditRow>) => {
    const model = (await rowsThere()).find(({ reason }) => reason === 'organisation_changed')!;
    const row = { ...model, id: uuidv7(Date.now()), ...more };
    const hashed = Object.fromEntries(HASHED_COLUMNS.map((name) => [name, row[name]]));
    await world.db
      .insertInto('audit_rows')
      .values({ ...row, row_hash: hashOf(hashed) })
      .execute();
  };
  const saved = async (checkpoint: string) => {
    const cwd = newFolder();
    const save = (name: string, text: string) => writeFileSync(join(cwd, name), text);
    save('log.jsonl', await fetched('/owner/log/export'));
    save('key', await fetched(`/.well-known/svc-log/${organisation.id}`));
    save('receipts', await fetched('/.well-known/svc-receipt-keys.json'));
    save('checkpoint', checkpoint);
    return async (...more: string[]) =>
      await hosted(['verify', 'export', 'log.jsonl', '--key', 'key', '--checkpoint', 'checkpoint', ...more], {
        cwd,
      });
  };

  test('KEY-08 rows covered by a forged audit_purged are reported as missing; without the keys of receipts as unchecked', async () => {
    const agent = await organisation.agent();
    for (let at = 0; at < 10; at++) await agent.act(READ);
    await organisation.ask('POST', '/owner/organisation', { approval_ttl_seconds: 61 });
    const size = await settled(11);
    const kept = await fetched(`/orgs/${organisation.id}/checkpoint`);
    const purged = { 0: Buffer.alloc(32, 255).toString('base64') };
    const change = { by: 'broker', how: 'broker', kind: 'reads', before: new Date().toISOString(), rows: 10, purged };
    await write({ reason: 'audit_purged', flags: JSON.stringify({ change }) });
    await settled(size + 1);
    const calls = (await rowsThere()).filter(({ kind }) => kind === 'action').map(({ id }) => id);
    expect(calls).toHaveLength(10);
    await world.db.deleteFrom('audit_rows').where('id', 'in', calls).execute();
    const verify = await saved(kept);
    const bare = await verify();
    expect([bare.code, bare.stdout]).toEqual([1, '']);
    expect(bare.stderr).toContain('unchecked: Whether the broker deleted 10 rows, from row 0 on,');
    expect(bare.stderr).toContain('is unknown without the key set of receipts (--receipt-keys)');
    const withKeys = await verify('--receipt-keys', 'receipts');
    expect([withKeys.code, withKeys.stdout]).toEqual([1, '']);
    expect(withKeys.stderr).toContain('missing: Rows 0 to 9 are missing.');
    expect(withKeys.stderr).toContain('receipt: The receipt of row 11 does not verify: its signature does not match');
  }, 180_000);

  test('KEY-08 an event of a kind without receipts is counted separately, because its author cannot be verified', async () => {
    await organisation.ask('POST', '/owner/organisation', { approval_ttl_seconds: 62 });
    const size = await settled(1);
    const kept = await fetched(`/orgs/${organisation.id}/checkpoint`);
    const genuine = await (await saved(kept))('--receipt-keys', 'receipts');
    expect([genuine.code, genuine.stdout.includes('carr')]).toEqual([0, false]);
    const bare = { receipt: null, receipt_kid: null, receipt_format: null, receipt_issuer: null };
    await write({ ...bare, reason: 'connection_connected', detail: 'never happened', flags: '{}' });
    await settled(size + 1);
    const { code, stdout } = await (await saved(kept))('--receipt-keys', 'receipts');
    expect(code).toBe(0);
    expect(stdout).toContain('1 event carries no receipt: its author is unknown.');
  }, 180_000);
});
