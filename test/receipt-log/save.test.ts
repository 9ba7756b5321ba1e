/** `verify save` into a folder with an earlier export, from a broker whose rows were changed since. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { commandHost } from '../world/command.ts';
import { newFolder } from '../world/stores.ts';
import { READ, startWorld } from '../world/world.ts';

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
  const check = async (folder: string, ...more: string[]) =>
    await hosted(['verify', 'export', folder, ...more], { cwd });
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
  return { world, cwd, save, check, called };
}

test('does not replace a saved log by one whose rows were changed, but saves it to another folder', async () => {
  const { world, cwd, save, called } = await startSaving();
  await called('what was logged');
  expect((await save('kept')).stderr).toBe('');
  const log = readFileSync(join(cwd, 'kept/log.jsonl'), 'utf8');
  expect(log).toContain('what was logged');
  await called('one more');
  expect((await save('kept')).stdout).toContain('kept has 2 checkpoints');
  await world.db
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

test('accepts a folder whose line ends became CRLF, and ignores hidden files', async () => {
  const { cwd, save, check, called } = await startSaving();
  await called('what was logged');
  expect((await save('kept')).stderr).toBe('');
  const [checkpoint = ''] = readdirSync(join(cwd, 'kept/checkpoints'));
  for (const name of ['log.key', 'receipt-keys.json', `checkpoints/${checkpoint}`]) {
    const file = join(cwd, 'kept', name);
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll('\n', '\r\n'));
  }
  writeFileSync(join(cwd, 'kept/checkpoints/.DS_Store'), 'of the Finder');
  for (let i = 0; i < 2; i++) {
    expect(await check('kept')).toMatchObject({ code: 0, stderr: '' });
    expect(await save('kept')).toMatchObject({
      stdout: expect.stringContaining('kept has 1 checkpoint of'),
      stderr: '',
    });
  }
});

test('names the checkpoint that does not fit', async () => {
  const { cwd, save, check, called } = await startSaving();
  await called('what was logged');
  await save('kept');
  const [size = ''] = readdirSync(join(cwd, 'kept/checkpoints'));
  const note = readFileSync(join(cwd, 'kept/checkpoints', size), 'utf8');
  const kept = (name: string, text: string) => writeFileSync(join(cwd, 'kept/checkpoints', name), text);
  kept('receipt', '{}');
  kept('wrong', note.replace(`\n${size}\n`, '\n77\n'));
  const both = await check('kept');
  expect(both.stderr).toContain(
    'The checkpoint kept/checkpoints/receipt is no signed note (of a receipt, use its inclusion',
  );
  expect(both.stderr).toMatch(/The checkpoint kept\/checkpoints\/wrong has a signature of \S+ that does not verify/);
  for (const name of ['receipt', 'wrong']) rmSync(join(cwd, 'kept/checkpoints', name));
  await called('one more');
  await save('more');
  const [more = ''] = readdirSync(join(cwd, 'more/checkpoints'));
  const later = await check('kept', '--checkpoint', `more/checkpoints/${more}`);
  expect(later.stderr).toContain(
    `The checkpoint more/checkpoints/${more} is of ${more} rows, and the export has ${size}.`,
  );
  const missing = await check('no-such');
  expect([missing.code, missing.stderr]).toEqual([1, 'The export no-such cannot be read (ENOENT).\n']);
});

test('does not replace a damaged key set of receipts, which would trust the keys that are published now', async () => {
  const { cwd, save, check, called } = await startSaving();
  await called('what was logged');
  await save('kept');
  const file = join(cwd, 'kept/receipt-keys.json');
  const keys = readFileSync(file, 'utf8');
  writeFileSync(file, keys.slice(0, 60));
  expect((await check('kept')).code).toBe(1);
  const refused = await save('kept');
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringContaining('kept/receipt-keys.json is no key set. Nothing'),
  ]);
  expect(readFileSync(file, 'utf8')).toBe(keys.slice(0, 60));
  writeFileSync(file, keys);
  expect((await save('kept')).stderr).toBe('');
});

test('several saves into one folder may overlap, and leave nothing behind', async () => {
  const { cwd, save, check, called } = await startSaving();
  await called('what was logged');
  for (let round = 0; round < 2; round++)
    for (const { code, stderr } of await Promise.all([1, 2, 3].map(async () => await save('kept'))))
      expect([code, stderr]).toEqual([0, '']);
  // A download of a killed process is removed by a later run, and one that may still run is not.
  const [killed, running] = ['.log.jsonl.1.new.part', '.log.jsonl.2.new.part'].map((name) => join(cwd, 'kept', name));
  for (const file of [killed!, running!]) writeFileSync(file, '');
  utimesSync(killed!, new Date(), new Date(Date.now() - 25 * 3600 * 1000));
  await save('kept');
  expect([existsSync(killed!), existsSync(running!)]).toEqual([false, true]);
  rmSync(running!);
  expect(readdirSync(join(cwd, 'kept')).toSorted()).toEqual([
    'checkpoints',
    'log.jsonl',
    'log.key',
    'receipt-keys.json',
  ]);
  expect((await check('kept')).code).toBe(0);
});

test('does not save the log of another organisation into the folder', async () => {
  const { world, cwd, save, called } = await startSaving();
  await called('what was logged');
  await save('kept');
  const log = readFileSync(join(cwd, 'kept/log.jsonl'), 'utf8');
  const { broker, baseUrl } = world.running;
  const { id, owner } = await world.demoOrganisation();
  const other = ['--url', baseUrl, '--owner-token', mintOwnerSession(broker, owner).token];
  const refused = await hosted(['verify', 'save', 'kept', ...other], { cwd });
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringMatching(
      new RegExp(`^kept has the log \\S+, and the broker's is \\S+/orgs/${id}\\. Nothing was saved: each`),
    ),
  ]);
  expect(readFileSync(join(cwd, 'kept/log.jsonl'), 'utf8')).toBe(log);
});
