/** The content of docs/operations.md is correct: its commands run, its servers start, and its quotes are messages of the broker. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { BIN, COMPILE_CACHE, ROOT } from '../world/checkout.ts';
import {
  missingTools,
  perform,
  SHOWN_AT,
  type ShellWorld,
  startAsShown,
  still,
  toolNote,
} from '../world/docs-commands.ts';
import { fencesOf } from '../world/markdown.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { newDatabase, newFolder, postgresNote } from '../world/stores.ts';

const fences = fencesOf(readFileSync(join(ROOT, 'docs', 'operations.md'), 'utf8'));
const key = (): string => randomBytes(32).toString('base64');

/** Returns the text with the varying parts of these outputs replaced: key ids, counts and sizes. */
const same = (text: string): string =>
  still(text)
    .replaceAll(/\b[0-9a-f]{16}\b/g, '<key>')
    .replaceAll(/\d+ stored secrets were/g, '<number> stored secrets were')
    .replaceAll(/\d+\.\d MB/g, '<size>');

/** Runs a script that starts a server. Returns its output once the server is running or has ended; the server is stopped after the test file. */
function output(script: string, environment: Record<string, string>): Promise<string> {
  const quiet = { PORT: '0', DRAIN_SECONDS: '0', LOG_LEVEL: 'debug', AGENT_BROKER_DATA: join(newFolder(), 'data') };
  const npx = `npx() { shift; exec "${process.execPath}" "${BIN}" "$@"; }`;
  const child: ChildProcess = spawn('bash', ['-c', `${npx}\n${script}`], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: COMPILE_CACHE, ...quiet, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<void>((done) => child.once('close', () => done()));
  afterFile(async () => {
    child.kill('SIGTERM');
    await ended;
  });
  return new Promise((found) => {
    let text = '';
    for (const stream of [child.stdout!, child.stderr!])
      stream.on('data', (chunk: Buffer) => {
        text += chunk;
        if (/running at http\S+\n/.test(text) && /"msg":"the broker is running"/.test(text)) found(text);
      });
    void ended.then(() => found(text));
  });
}

describe.skipIf(missingTools.length > 0)(`operations.md${toolNote}`, () => {
  const folder = newFolder();
  const world: ShellWorld = { folder, baseUrl: '', data: join(folder, 'data'), state: join(folder, 'state.env') };

  beforeAll(async () => {
    world.baseUrl = await startAsShown(folder, world.data);
    // A held call for Bob to decide.
    const held = await perform(
      `curl -s ${SHOWN_AT}/v1/actions -H "Authorization: Bearer $(npx agent-broker token)" -H "Content-Type: application/json" \
        -d '{"platform":"sandbox","endpoint":"/refunds","method":"POST","scope":"sandbox:refunds.create","data":{"payment":"pay_1001","amount":500,"currency":"EUR"}}'`,
      world,
    );
    expect(JSON.parse(held).status).toBe('pending_approval');
  });

  const commands = fences.flatMap((fence, i) => {
    const next = fences[i + 1];
    // An output block belongs to a command only when it follows immediately.
    const below = fence.line + fence.text.split('\n').length + 3;
    const answer = next?.info === 'text' && next.line < below ? next.text : undefined;
    return fence.info === 'sh run' ? [{ ...fence, answer }] : [];
  });

  // The order matters: later blocks use the results of earlier ones.
  test.each(commands)('the block at line $line does what the page shows', async ({ text, answer }) => {
    const printed = await perform(text, world);
    if (answer !== undefined) expect(same(printed)).toBe(same(answer));
    if (text.includes('/approve"'))
      expect(JSON.parse(printed)).toMatchObject({ status: 'approved', note: 'Only this once.' });
  });

  test('the output of some blocks is compared', () => {
    expect(commands.filter(({ answer }) => answer !== undefined).length).toBeGreaterThan(3);
  });

  test('the blocks for a stopped broker work on a copy of the store', async () => {
    const blocks = fences.filter(({ info }) => info === 'sh stopped');
    expect(blocks.length).toBeGreaterThan(0);
    const data = join(folder, 'copy');
    for (const name of ['store', 'keys']) mkdirSync(join(data, name), { recursive: true });
    copyFileSync(join(folder, 'backup.db'), join(data, 'store', 'broker.db'));
    copyFileSync(join(world.data, 'keys', 'master.key'), join(data, 'keys', 'master.key'));
    const serve = 'npx agent-broker serve --no-sandbox';
    expect(await output(serve, { AGENT_BROKER_DATA: data })).toContain('copied into place without the restore command');
    for (const { text } of blocks) await perform(text, { ...world, data, state: join(folder, 'copy.env') });
    const said = await output(serve, { AGENT_BROKER_DATA: data });
    expect(said).toContain('running at');
    expect(said).toMatch(/until then no call is made: AGENT_BROKER_DATA=\S+ npx agent-broker restored/);
  });

  const servers = fences.filter(
    ({ info, text }) => info === 'sh serve' && (!postgresNote || !text.includes('postgres:')),
  );

  const logged = fences.filter(({ text }) => text.startsWith('{"level"')).map(({ text }) => JSON.parse(text));
  const shown = logged.find(({ msg }) => msg === 'the broker is running');

  test.each(servers)('the server at line $line starts, and logs it as the page shows', async ({ text }) => {
    const script = text
      .replace('AGENT_BROKER_MASTER_KEY=…', `AGENT_BROKER_MASTER_KEY=${key()}`)
      .replace('OIDC_CLIENT_SECRET=…', 'OIDC_CLIENT_SECRET=a-secret')
      .replace(/postgres:\S+/, () => database);
    const printed = await output(script, {});
    const base = /\bBASE_URL=(\S+)/.exec(text)?.[1] ?? 'http://localhost:';
    expect(printed).toContain(`running at ${base}`);
    const [said = ''] = printed.split('\n').filter((line) => line.includes('"msg":"the broker is running"'));
    const { level, ...others } = JSON.parse(said);
    expect([level, ...Object.keys(others)]).toEqual([shown.level, ...Object.keys(shown).slice(1)]);
    expect(printed).toContain(`"store":"${text.includes('postgres:') ? 'postgres' : 'sqlite'}"`);
  });
  let database = '';
  beforeAll(async () => {
    if (!postgresNote) database = await newDatabase();
  });

  describe('quotes the message of the broker', () => {
    const quoted = (beginning: string): string => fences.find(({ text }) => text.startsWith(beginning))!.text.trim();
    const serve = 'npx agent-broker serve --no-sandbox';

    test('about a second server on a data folder', async () => {
      const said = await output(serve, { AGENT_BROKER_DATA: world.data });
      expect(said.replaceAll(world.data, '/srv/broker')).toContain(quoted('Another broker is running'));
    });

    test('about a master key that does not match the store', async () => {
      const data = join(folder, 'restored');
      mkdirSync(join(data, 'store'), { recursive: true });
      copyFileSync(join(folder, 'backup.db'), join(data, 'store', 'broker.db'));
      const said = await output(serve, { AGENT_BROKER_DATA: data, AGENT_BROKER_MASTER_KEY: key() });
      expect(said).toContain(quoted('This is not the master key'));
    });

    test('about a key file that is a symbolic link', async () => {
      const link = join(folder, 'master.key');
      writeFileSync(join(folder, 'real.key'), `${key()}\n`, { mode: 0o600 });
      symlinkSync('real.key', link);
      const said = await output(serve, { AGENT_BROKER_KEY_FILE: link });
      expect(said.replaceAll(link, '/run/secrets/master.key')).toContain(quoted('The key file'));
    });
  });

  test('has the nginx settings of deploy/compose', () => {
    const whole = readFileSync(join(ROOT, 'deploy', 'compose', 'nginx.conf'), 'utf8');
    const lines = fences.filter(({ info }) => info === 'nginx').flatMap(({ text }) => text.split('\n'));
    const told = lines.map((line) => line.trim()).filter((line) => /^(proxy_(?!pass)|location|upstream)/.test(line));
    expect(told.length).toBeGreaterThan(6);
    expect(told.filter((line) => !whole.includes(line))).toEqual([]);
  });
});
