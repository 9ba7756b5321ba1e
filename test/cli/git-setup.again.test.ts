/** `git-setup` more than once: several agents and connections, a person's own values, and undoing it later. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { beforeEach, describe, expect, test } from 'vitest';
import { commandHost } from '../world/command.ts';
import { type GitMachine, newGitMachine } from './git-machine.ts';

const BROKER = 'https://broker.acme.example/base';
const APP = `${BROKER}/git/acme/app`;
const LIB = `${BROKER}/git/other/lib`;

const hosted = commandHost();
let machine: GitMachine;
beforeEach(() => {
  machine = newGitMachine(BROKER, hosted);
});
const setup = (...words: string[]) => machine.setup(...words);
/** Whose token git would send there, and for which connection: asked for once, because each time starts four processes. */
const identityFor = (url: string) => {
  const { password = '', username } = machine.credentialFor(url);
  return [decodeJwt(password).agent_id, username];
};
const signerOf = (url: string) => identityFor(url)[0];
const connectionOf = (url: string) => machine.credentialFor(url).username;

describe('another run', () => {
  test('for other repositories leaves the connection of the earlier ones', async () => {
    await setup('acme/app', '--connection', 'work');
    await setup('other/lib', '--connection', 'private');
    await setup('third/x');
    for (const end of ['', '.git']) {
      expect(connectionOf(`${APP}${end}`)).toBe('connection.work');
      expect(connectionOf(`${LIB}${end}`)).toBe('connection.private');
      expect(connectionOf(`${BROKER}/git/third/x${end}`)).toBe('agent');
    }
    await setup('acme/app');
    expect([connectionOf(APP), connectionOf(LIB)]).toEqual(['agent', 'connection.private']);
  });

  test('for other repositories leaves the agent of the earlier ones', async () => {
    const second = machine.profileOf('agt_2');
    await setup('acme/app');
    const { removed } = JSON.parse((await setup('other/lib', '--profile', second, '--json')).stdout);
    expect(removed).toEqual([]);
    expect([signerOf(APP), signerOf(LIB)]).toEqual(['agt_1', 'agt_2']);
    // The same repository changes its agent.
    await setup('acme/app', '--profile', second);
    expect(signerOf(APP)).toBe('agt_2');
  });

  test.each([
    [[], ['acme/app']],
    [['acme/app'], []],
    [['acme/app'], ['acme/*']],
  ])('for %j and then for %j: what is said of the part holds for it', async (first, then) => {
    const second = machine.profileOf('agt_2');
    const isNarrow = (words: string[]) => words[0] === 'acme/app';
    for (const words of [first, then])
      await setup(...words, ...(isNarrow(words) ? ['--profile', second] : ['--connection', 'work']));
    expect(identityFor(`${APP}.git`)).toEqual(['agt_2', 'agent']);
    const beside = `${BROKER}/git/acme/web`;
    expect(identityFor(beside)).toEqual(['agt_1', 'connection.work']);
    // Undone by the agent of the part, the rest stays, and holds for the part, too.
    await setup('--undo', '--profile', second);
    expect(identityFor(APP)).toEqual(['agt_1', 'connection.work']);
    await setup('--undo');
    expect(machine.config().trim()).toBe('');
  });

  test('takes over what an earlier version wrote for all of its repositories together', async () => {
    await setup('--connection', 'work');
    const rules = ['acme/app', 'other/lib'].map(
      (one) => `[url "${BROKER}/git/${one}"]\n\tinsteadOf = https://github.com/${one}\n`,
    );
    const [credential = ''] = machine.config().split('[url');
    machine.configure(credential + rules.join(''));
    await setup('other/lib', '--connection', 'private');
    expect([connectionOf(APP), connectionOf(LIB)]).toEqual(['connection.work', 'connection.private']);
    await setup('--undo', 'acme/app');
    expect([connectionOf(APP), connectionOf(LIB)]).toEqual([undefined, 'connection.private']);
    await setup('--undo');
    expect(machine.config().trim()).toBe('');
  });

  test('leads a repository to the broker of the last run', async () => {
    await setup('acme/app');
    const moved = machine.profileOf('agt_2', 'https://moved.acme.example');
    await setup('acme/app', '--profile', moved);
    expect(machine.rewritten('git@github.com:acme/app')).toBe('https://moved.acme.example/git/acme/app');
    expect(machine.config()).not.toContain(BROKER);
  });
});

test.each([[[]], [['acme/app']]])('values that a person wrote in the same sections stay, with %j', async (words) => {
  const own = [
    ...[`[credential "${BROKER}/git"]`, '\tusername = ann', '\thelper = store'],
    ...[`[credential "${APP}"]`, '\tusername = ann'],
    ...[`[url "${BROKER}/git/"]`, '\tinsteadOf = work:', `[url "${APP}"]`, '\tinsteadOf = app:'],
    ...[`[http "${BROKER}/git"]`, '\tsslVerify = true', ''],
  ].join('\n');
  machine.configure(own);
  for (const connection of ['work', 'private']) {
    await setup(...words, '--connection', connection);
    expect(connectionOf(words.length === 0 ? LIB : APP)).toBe(`connection.${connection}`);
    expect(machine.rewritten('app:')).toBe(APP);
  }
  expect((await setup('--undo')).code).toBe(0);
  expect(machine.config()).toBe(own);
});

describe('--undo', () => {
  test('needs neither the broker nor the host where it served git', async () => {
    const base = { proxy_base_url: 'http://raw.localhost:1' };
    const broker = createServer((_, response) => response.end(JSON.stringify({ ...base, base_url: url })));
    await new Promise<void>((ready) => broker.listen(0, '127.0.0.1', ready));
    const url = `http://127.0.0.1:${(broker.address() as AddressInfo).port}`;
    machine = newGitMachine(url, hosted);
    await setup();
    expect(machine.rewritten('https://github.com/acme/app')).toBe('http://raw.localhost:1/git/acme/app');
    base.proxy_base_url = 'http://moved.localhost:1';
    await setup('acme/app');
    expect(machine.rewritten('https://github.com/acme/app')).toBe('http://moved.localhost:1/git/acme/app');
    broker.closeAllConnections();
    await new Promise((closed) => broker.close(closed));
    const { code, stdout } = await setup('--undo');
    expect([code, stdout]).toEqual([0, expect.stringContaining('url.http://raw.localhost:1/git/')]);
    expect(machine.config().trim()).toBe('');
  });

  test('needs no profile, as long as it is named', async () => {
    await setup('acme/app');
    rmSync(machine.profile);
    expect(await setup('--undo')).toMatchObject({ code: 0 });
    expect(machine.config().trim()).toBe('');
    expect(await setup('--undo')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no agent profile'),
    });
  });

  test('takes out what its own profile wrote, and names the others', async () => {
    const second = machine.profileOf('agt_2');
    await setup('acme/app', '--profile', second);
    const { code, stdout } = await setup('--undo');
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/There is no setting of this agent(.|\n)*--undo --profile /),
    ]);
    const [, told = ''] = /--undo --profile '(.*)'$/m.exec(stdout) ?? [];
    expect(told.replaceAll(`'\\''`, "'")).toBe(second);
    expect(signerOf(APP)).toBe('agt_2');
    await setup('--undo', '--profile', second);
    expect(machine.config().trim()).toBe('');
  });
});

describe('of two global files', () => {
  test('--undo takes the settings out of the one that --global is not any more', async () => {
    const folder = join(machine.home, '.config/git');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'config'), '[user]\n\tname = Ann\n');
    expect((await setup('acme/app')).code).toBe(0);
    expect(machine.config()).toBe('');
    machine.configure('[user]\n\temail = ann@acme.example\n');
    const ran = await setup('--undo');
    expect(ran.code, ran.stderr).toBe(0);
    expect(readFileSync(join(folder, 'config'), 'utf8')).toBe('[user]\n\tname = Ann\n');
    expect(machine.config()).toBe('[user]\n\temail = ann@acme.example\n');
  });

  test('--undo names another file that has settings of the agent, and fails', async () => {
    await setup('acme/app');
    const other = join(machine.home, 'included');
    writeFileSync(other, machine.config());
    execFileSync('git', ['config', '--file', join(machine.home, '.gitconfig'), 'include.path', other]);
    const { code, stderr } = await setup('--undo');
    expect([code, stderr]).toEqual([1, expect.stringContaining(`file:${other}`)]);
    expect(machine.config()).not.toContain('insteadOf');
  });
});

describe('the file', () => {
  const file = () => join(machine.home, '.gitconfig');

  test('stays as it is while another process changes it, and that is said', async () => {
    machine.configure('[user]\n\tname = Ann\n');
    // As git leaves it while it writes, or where it was killed.
    writeFileSync(`${file()}.lock`, '');
    const refused = await setup('acme/app');
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(`${file()}.lock is there`)]);
    expect(machine.config()).toBe('[user]\n\tname = Ann\n');
    rmSync(`${file()}.lock`);
    expect((await setup('acme/app')).code).toBe(0);
    expect(existsSync(`${file()}.lock`)).toBe(false);
    expect(signerOf(APP)).toBe('agt_1');
  });

  test('is replaced where a link leads, with its rights and all else that it has, even without a newline at its end', async () => {
    const kept = join(machine.home, 'dotfiles');
    const own = '; mine\n[alias]\n\tst = "status -sb" # short\n[core]\n\tpager = less \\\n-F';
    writeFileSync(kept, own, { mode: 0o640 });
    symlinkSync(kept, file());
    expect((await setup('acme/app')).code).toBe(0);
    expect(lstatSync(file()).isSymbolicLink()).toBe(true);
    expect(statSync(kept).mode & 0o777).toBe(0o640);
    expect(machine.config().startsWith(`${own}\n`)).toBe(true);
    expect(signerOf(APP)).toBe('agt_1');
    await setup('--undo');
    expect(machine.config()).toBe(`${own}\n`);
  });

  test('stays as it is, and unlocked, where there is no folder for the copy; one that nobody may write is replaced', async () => {
    machine.configure('[user]\n\tname = Ann\n');
    const env = { ...machine.env, TMPDIR: join(machine.home, 'gone') };
    const failed = await hosted(['git-setup', 'acme/app'], { cwd: machine.home, env });
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining(`${file()} cannot be written`)]);
    expect(existsSync(`${file()}.lock`)).toBe(false);
    expect(machine.config()).toBe('[user]\n\tname = Ann\n');
    // As git does, which asks the folder alone.
    chmodSync(file(), 0o444);
    expect((await setup('acme/app')).code).toBe(0);
    expect(statSync(file()).mode & 0o777).toBe(0o444);
    expect(signerOf(APP)).toBe('agt_1');
  });

  test('is one that can be written: an empty name is none', async () => {
    const env = { ...machine.env, GIT_CONFIG_GLOBAL: '' };
    const { code, stderr } = await hosted(['git-setup'], { cwd: machine.home, env });
    expect([code, stderr]).toEqual([1, expect.stringContaining('GIT_CONFIG_GLOBAL is empty')]);
  });
});
