/** `git-setup` run more than once: several agents and connections, settings of the person, and a later --undo. */
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
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { beforeEach, describe, expect, test } from 'vitest';
import { commandHost } from '../world/command.ts';
import { listenOnLoopback } from '../world/listen.ts';
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
/** Returns the agent of the token that git would send there, and the connection. Both with one call, since each starts four processes. */
const identityFor = (url: string) => {
  const { password = '', username } = machine.credentialFor(url);
  return [decodeJwt(password).agent_id, username];
};
const signerOf = (url: string) => identityFor(url)[0];
const connectionOf = (url: string) => machine.credentialFor(url).username;

describe('another run', () => {
  test('for other repositories keeps the connection of the earlier repositories', async () => {
    await setup('acme/app', '--connection', 'work');
    await setup('other/lib', '--connection', 'private');
    await setup('third/x');
    for (const end of ['', '.git']) expect(connectionOf(`${APP}${end}`)).toBe('connection.work');
    expect(connectionOf(`${LIB}.git`)).toBe('connection.private');
    expect(connectionOf(`${BROKER}/git/third/x`)).toBe('agent');
    await setup('acme/app');
    expect([connectionOf(APP), connectionOf(LIB)]).toEqual(['agent', 'connection.private']);
  });

  test('for other repositories keeps the agent of the earlier repositories', async () => {
    const second = machine.profileOf('agt_2');
    await setup('acme/app');
    const { removed } = JSON.parse((await setup('other/lib', '--profile', second, '--json')).stdout);
    expect(removed).toEqual([]);
    expect([signerOf(APP), signerOf(LIB)]).toEqual(['agt_1', 'agt_2']);
    // A later run for the same repository changes its agent.
    await setup('acme/app', '--profile', second);
    expect(signerOf(APP)).toBe('agt_2');
  });

  test.each([
    [[], ['acme/app']],
    [['acme/app'], []],
    [['acme/app'], ['acme/*']],
  ])(
    'for %j and then for %j: the narrower setting applies to its repositories, in either order',
    async (first, then) => {
      const second = machine.profileOf('agt_2');
      const isNarrow = (words: string[]) => words[0] === 'acme/app';
      for (const words of [first, then])
        await setup(...words, ...(isNarrow(words) ? ['--profile', second] : ['--connection', 'work']));
      expect(identityFor(`${APP}.git`)).toEqual(['agt_2', 'agent']);
      const beside = `${BROKER}/git/acme/web`;
      expect(identityFor(beside)).toEqual(['agt_1', 'connection.work']);
      // After --undo of the narrower setting's agent, the other setting applies to its repositories, too.
      await setup('--undo', '--profile', second);
      expect(identityFor(APP)).toEqual(['agt_1', 'connection.work']);
      await setup('--undo');
      expect(machine.config().trim()).toBe('');
    },
  );

  test('replaces the single setting for all repositories that an earlier version wrote', async () => {
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

  test('moves a repository to the broker of the last run', async () => {
    await setup('acme/app');
    const moved = machine.profileOf('agt_2', 'https://moved.acme.example');
    await setup('acme/app', '--profile', moved);
    expect(machine.rewritten('git@github.com:acme/app')).toBe('https://moved.acme.example/git/acme/app');
    expect(machine.config()).not.toContain(BROKER);
  });
});

test.each([[[]], [['acme/app']]])('a person’s own settings in the same sections stay, with %j', async (words) => {
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
  test('needs neither the broker nor the earlier address for git', async () => {
    const base = { proxy_base_url: 'http://raw.localhost:1' };
    const broker = createServer((_, response) => response.end(JSON.stringify({ ...base, base_url: url })));
    const port = await listenOnLoopback(broker);
    const url = `http://127.0.0.1:${port}`;
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

  test('works without the profile file, as long as its path is given', async () => {
    await setup('acme/app');
    rmSync(machine.profile);
    expect(await setup('--undo')).toMatchObject({ code: 0 });
    expect(machine.config().trim()).toBe('');
    expect(await setup('--undo')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no agent profile'),
    });
  });

  test('removes the settings of its own profile, and names the profiles of other settings', async () => {
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

describe('with two global files', () => {
  test('--undo removes the settings from the file that git --global does not use any more', async () => {
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

  test('--undo fails and names another file that contains settings of the agent', async () => {
    await setup('acme/app');
    const other = join(machine.home, 'included');
    writeFileSync(other, machine.config());
    execFileSync('git', ['config', '--file', join(machine.home, '.gitconfig'), 'include.path', other]);
    const { code, stderr } = await setup('--undo');
    expect([code, stderr]).toEqual([1, expect.stringContaining(`file:${other}`)]);
    expect(machine.config()).not.toContain('insteadOf');
  });
});

describe('the configuration file', () => {
  const file = () => join(machine.home, '.gitconfig');

  test('is not changed while another process holds its lock, and the error names the lock file', async () => {
    machine.configure('[user]\n\tname = Ann\n');
    // The lock file that git has while it writes, or leaves when it was killed.
    writeFileSync(`${file()}.lock`, '');
    const refused = await setup('acme/app');
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(`${file()}.lock is there`)]);
    expect(machine.config()).toBe('[user]\n\tname = Ann\n');
    rmSync(`${file()}.lock`);
    expect((await setup('acme/app')).code).toBe(0);
    expect(existsSync(`${file()}.lock`)).toBe(false);
    expect(signerOf(APP)).toBe('agt_1');
  });

  test('is replaced at a symlink’s target, with its mode and other content, even without a final newline', async () => {
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

  test('is not taken for an empty one when it cannot be read', async () => {
    mkdirSync(file());
    for (const words of [['acme/app'], ['--undo']])
      expect(await setup(...words)).toMatchObject({ code: 1, stderr: expect.stringContaining('Is a directory') });
  });

  test('is not changed or left locked when there is no temporary folder; a read-only file is replaced', async () => {
    machine.configure('[user]\n\tname = Ann\n');
    const env = { ...machine.env, TMPDIR: join(machine.home, 'gone') };
    const failed = await hosted(['git-setup', 'acme/app'], { cwd: machine.home, env });
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining(`${file()} cannot be written`)]);
    expect(existsSync(`${file()}.lock`)).toBe(false);
    expect(machine.config()).toBe('[user]\n\tname = Ann\n');
    // As git itself does: only the folder needs write permission.
    chmodSync(file(), 0o444);
    expect((await setup('acme/app')).code).toBe(0);
    expect(statSync(file()).mode & 0o777).toBe(0o444);
    expect(signerOf(APP)).toBe('agt_1');
  });

  test('must have a name: an empty GIT_CONFIG_GLOBAL is an error', async () => {
    const env = { ...machine.env, GIT_CONFIG_GLOBAL: '' };
    const { code, stderr } = await hosted(['git-setup'], { cwd: machine.home, env });
    expect([code, stderr]).toEqual([1, expect.stringContaining('GIT_CONFIG_GLOBAL is empty')]);
  });
});
