/** `verify save` into a folder with an earlier export, from a broker whose rows were changed since. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { commandHost } from '../world/command.ts';
import { READ } from '../world/requests.ts';
import { newFolder } from '../world/stores.ts';
import { startWorld } from '../world/world.ts';

const hosted = commandHost();

/** Starts a broker. `called`: makes a call, and waits until the log has it. `save`: runs `verify save` for a folder in `cwd`. */
async function startSaving() {
  const world = await startWorld('sqlite');
  const organisation = await world.demoOrganisation();
  const agent = await organisation.agent();
  const { token } = mintOwnerSession(world.running.broker, organisation.owner);
  const cwd = newFolder();
  const save = async (folder: string) =>
    await hosted(['verify', 'save', folder, '--url', world.running.baseUrl, '--owner-token', token], { cwd });
  const called = async (reason: string) => {
    const { size } = (await organisation.ask('GET', '/owner/log')).body;
    expect((await agent.act({ ...READ, reason })).status).toBe(200);
    await expect
      .poll(async () => (await organisation.ask('GET', '/owner/log')).body.checkpoint?.size, {
        timeout: 15_000,
        interval: 500,
      })
      .toBeGreaterThan(size);
  };
  return { world, cwd, save, called };
}

test('does not replace a saved log by one whose rows were changed, but saves it to another folder', async () => {
  const { world, cwd, save, called } = await startSaving();
  await called('what was logged');
  expect((await save('kept')).stderr).toBe('');
  const log = readFileSync(join(cwd, 'kept/log.jsonl'), 'utf8');
  expect(log).toContain('what was logged');
  await called('one more');
  expect((await save('kept')).stdout).toContain('kept has 2 checkpoints');

  const { db } = world.running.broker.store;
  await db
    .updateTable('audit_rows')
    .set({ agent_reason: 'something else' })
    .where('agent_reason', '=', 'what was logged')
    .execute();
  await called('after it');
  const refused = await save('kept');
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('is not the one that kept has checkpoints of. Nothing was saved: ');
  expect(refused.stderr).toMatch(/^ {2}changed: Row \d+ is not/m);
  expect(readFileSync(join(cwd, 'kept/log.jsonl'), 'utf8')).toContain('what was logged');
  expect(readdirSync(join(cwd, 'kept')).toSorted()).toEqual([
    'checkpoints',
    'log.jsonl',
    'log.key',
    'receipt-keys.json',
  ]);
  expect(readdirSync(join(cwd, 'kept/checkpoints'))).toHaveLength(2);
  expect((await hosted(['verify', 'export', 'kept'], { cwd })).stdout).toContain('Nothing was changed');
  expect((await save('other')).code).toBe(0);
  expect(readFileSync(join(cwd, 'other/log.jsonl'), 'utf8')).toContain('something else');
});

test('does not overwrite files of others, and saves into the folder without them', async () => {
  const { cwd, save, called } = await startSaving();
  await called('what was logged');
  for (const name of ['log.jsonl', 'receipt-keys.json', 'checkpoints/1']) {
    const file = join(cwd, 'mine', name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, 'not of the broker');
    const { code, stderr } = await save('mine');
    expect([code, stderr]).toEqual([1, expect.stringContaining(`mine/${name} is there, and mine/log.key is not`)]);
    expect(readFileSync(file, 'utf8')).toBe('not of the broker');
    expect(readdirSync(join(cwd, 'mine'), { recursive: true }).length).toBe(name.split('/').length);
    rmSync(join(cwd, 'mine'), { recursive: true });
  }
  mkdirSync(join(cwd, 'mine'));
  writeFileSync(join(cwd, 'mine', 'notes.txt'), 'not of the broker');
  for (let i = 0; i < 2; i++) expect((await save('mine')).stderr).toBe('');
  expect(readFileSync(join(cwd, 'mine', 'notes.txt'), 'utf8')).toBe('not of the broker');
  expect((await hosted(['verify', 'export', 'mine'], { cwd })).stdout).toContain('Nothing was changed');
});
