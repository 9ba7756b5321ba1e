/** `git-setup` and `git-credential` with the installed git. */
import { execFileSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { beforeEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { answerGit } from '../../bin/git/credential.ts';
import { PolicyRules } from '../../broker/config-file/schema.ts';
import { commandHost, runCommand } from '../world/command.ts';
import { fresh } from '../world/world.ts';
import { newGitMachine } from './git-machine.ts';

const BROKER = 'https://broker.acme.example/base';

const hosted = commandHost();
let home: string;
let env: Record<string, string>;
const machine = fresh(() => newGitMachine(BROKER, hosted));
beforeEach(() => {
  ({ home, env } = machine);
});

const setup = (...words: string[]) => machine.setup(...words);
const config = () => machine.config();
const credentialFor = (url: string) => machine.credentialFor(url);
const rewritten = (url: string) => machine.rewritten(url);

/** Only root can create devices and files of other users. */
const notRoot = process.getuid?.() !== 0;
const rootNote = notRoot ? ' (skipped: not run as root)' : '';

describe('git-setup', () => {
  test('sends every repository of the host to the broker, with a fresh token that is valid for 300 seconds', async () => {
    const { code, stdout } = await setup();
    expect(code).toBe(0);
    expect(stdout).toContain('for all of your clones on this machine');
    for (const url of [
      'https://github.com/acme/app.git',
      'git@github.com:acme/app.git',
      'ssh://git@github.com/acme/app.git',
      'https://github.com:443/acme/app.git',
      'git@github.com:/acme/app.git',
      'github.com:acme/app.git',
      'github.com:/acme/app.git',
      'http://github.com/acme/app.git',
      'https://git@github.com/acme/app.git',
      'ssh://git@github.com:22/acme/app.git',
      'ssh://git@ssh.github.com:443/acme/app.git',
      'git://github.com/acme/app.git',
      'git+ssh://git@github.com/acme/app.git',
      'https://GitHub.com/acme/app.git',
      'https://www.github.com/acme/app.git',
      'git@GitHub.com:acme/app.git',
    ])
      expect(rewritten(url)).toBe(`${BROKER}/git/acme/app.git`);
    expect(rewritten('https://gitlab.com/acme/app')).toBe('https://gitlab.com/acme/app');
    const { username, password = '' } = credentialFor(`${BROKER}/git/acme/app.git`);
    expect(username).toBe('agent');
    const { agent_id, iat = 0, exp } = decodeJwt(password);
    expect([agent_id, exp]).toEqual(['agt_1', iat + 300]);
  });

  test('takes a repository with .git for the repository, so that its address without .git does not bypass the broker', async () => {
    expect((await setup('acme/app.git')).code).toBe(0);
    for (const url of ['https://github.com/acme/app', 'git@github.com:acme/app.git'])
      expect(rewritten(url)).toMatch(`${BROKER}/git/acme/app`);
    expect((await setup('--undo', 'acme/app.git')).stdout).toContain('removed');
    expect(config()).toBe('');
  });

  test.each(['acme', '../..', 'acme/..', './app', 'acme/app/x'])('takes %s for no repository', async (given) => {
    const { code, stderr } = await setup(given);
    expect([code, stderr]).toEqual([2, expect.stringContaining(`${given}: write a repository as owner/repo`)]);
    expect(config()).toBe('');
  });

  test('sends pushes to the broker, too, despite a shorter pushInsteadOf rule', async () => {
    writeFileSync(join(home, '.gitconfig'), '[url "git@github.com:"]\n\tpushInsteadOf = https://github.com/\n');
    const { code, stdout, stderr } = await setup('acme/app');
    expect(code, stderr).toBe(0);
    expect(stdout).toContain('.pushInsteadOf = https://github.com/acme/app');
    expect(stdout).not.toContain('bypass the broker. Do not');
    const clone = join(home, 'clone');
    const git = (...words: string[]) => execFileSync('git', words, { cwd: clone, env, encoding: 'utf8' }).trim();
    mkdirSync(clone);
    git('init', '-q');
    git('remote', 'add', 'origin', 'https://github.com/acme/app');
    expect(git('remote', 'get-url', '--push', 'origin')).toBe(`${BROKER}/git/acme/app`);
    expect((await setup('--undo')).code).toBe(0);
    expect(git('remote', 'get-url', '--push', 'origin')).toBe('git@github.com:acme/app');
  });

  test.each([
    ['insteadOf', 'git@github.com:', 'https://github.com/'],
    ['pushInsteadOf', 'git@github.com:', 'https://github.com/'],
    ['insteadOf', 'git@github.com:acme/', 'https://github.com/acme/'],
    ['insteadOf', 'https://ann:ghp_own@github.com/', 'git@github.com:'],
  ])('writes nothing when another rule takes precedence: %s', async (rule, base, from) => {
    writeFileSync(join(home, '.gitconfig'), `[url "${base}"]\n\t${rule} = ${from}\n`);
    const { code, stderr } = await setup();
    expect(code).toBe(1);
    expect(stderr).toContain(`url.${base.replace('ann:ghp_own@', '…@')}.${rule.toLowerCase()} = ${from}`);
    expect(config()).not.toContain(BROKER);
  });

  test('names the rules that lead to the code host from other addresses, because git rewrites an address only once', async () => {
    const rules = [
      ['git@github.com:', 'insteadOf', 'gh:'],
      ['https://ann:ghp_own@github.com/acme/', 'pushInsteadOf', 'acme:'],
      ['https://', 'insteadOf', 'git://'],
      ['https://gitlab.example/', 'insteadOf', 'gl:'],
    ].map(([base, rule, from]) => `[url "${base}"]\n\t${rule} = ${from}\n`);
    writeFileSync(join(home, 'work'), '[url "ssh://git@github.com/"]\n\tinsteadOf = w:\n');
    writeFileSync(join(home, '.gitconfig'), `${rules.join('')}[includeIf "gitdir:~/work/"]\n\tpath = work\n`);
    for (const repositories of [[], ['acme/app']]) {
      const { code, stdout, stderr } = await setup('--json', ...repositories);
      expect(code, stderr).toBe(0);
      expect(JSON.parse(stdout).bypassing).toEqual([
        'url.git@github.com:.insteadof = gh:',
        'url.https://…@github.com/acme/.pushinsteadof = acme:',
        'url.https://.insteadof = git://',
        `url.ssh://git@github.com/.insteadof = w: (in ${join(home, 'work')}, which an includeIf names)`,
      ]);
    }
    expect((await setup('other/app')).stdout).toContain('bypass the broker. Do not use them for the agent');
    expect(JSON.parse((await setup('--json', 'other/app')).stdout).bypassing).not.toContainEqual(
      expect.stringContaining('acme:'),
    );
  });

  test('writes nothing when a rule in a conditionally included file takes precedence', async () => {
    mkdirSync(join(home, 'conf'));
    writeFileSync(join(home, '.gitconfig'), '[includeIf "gitdir:~/work/"]\n\tpath = conf/work\n');
    writeFileSync(join(home, 'conf', 'work'), '[include]\n\tpath = more\n[includeIf "onbranch:x"]\n\tpath = ~/on-x\n');
    const rule = '[url "git@github.com:"]\n\tinsteadOf = https://github.com/\n';
    for (const file of [join(home, 'conf', 'more'), join(home, 'on-x')]) {
      writeFileSync(file, rule);
      const { code, stderr } = await setup();
      expect([code, stderr]).toEqual([
        1,
        expect.stringContaining('url.git@github.com:.insteadof = https://github.com/'),
      ]);
      expect(stderr).toMatch(/\(in \S+, which an includeIf names\)/);
      expect(config()).not.toContain(BROKER);
      // The rule for one repository is longer, so it takes precedence.
      expect((await setup('acme/app')).code).toBe(0);
      await setup('--undo');
      writeFileSync(file, '');
    }
    expect((await setup()).code).toBe(0);
  });

  test.skipIf(notRoot)(`a device in the place of the global file is left as it is${rootNote}`, async () => {
    const device = join(home, 'null');
    execFileSync('mknod', [device, 'c', '1', '3']);
    const { code, stderr } = await hosted(['git-setup'], { cwd: home, env: { ...env, GIT_CONFIG_GLOBAL: device } });
    expect([code, stderr]).toEqual([1, expect.stringContaining(`GIT_CONFIG_GLOBAL is ${device}`)]);
    expect(statSync(device).isCharacterDevice()).toBe(true);
  });

  test('prints the policy rule that lets an agent push its branches', async () => {
    const { stdout } = await setup('--dry-run');
    const [rule = '', last] = stdout.trimEnd().split('\n').slice(-2);
    expect(last).toBe('and refs: ["agent/*"] in its grant.');
    const parsed = PolicyRules.parse([parse(rule)]);
    expect(parsed).toEqual([{ effect: 'allow', platforms: ['codehost'], scopes: ['codehost:contents.*'] }]);
    await setup();
    expect((await setup('--undo')).stdout).not.toContain('codehost:contents');
  });

  test('no file contains a token, and other credential helpers do not get the token', async () => {
    const told = join(home, 'told');
    writeFileSync(join(home, '.gitconfig'), `[credential]\n\thelper = "!f() { cat >> ${told}; }; f"\n`);
    await setup();
    const { password = '' } = credentialFor(`${BROKER}/git/acme/app.git`);
    const approve = `protocol=https\nhost=broker.acme.example\npath=base/git/acme/app.git\nusername=agent\npassword=${password}\n\n`;
    execFileSync('git', ['credential', 'approve'], { input: approve, env: { ...process.env, ...env } });
    expect(existsSync(told)).toBe(false);
    expect(config()).not.toContain(password);
    expect(config()).not.toContain('PRIVATE KEY');
  });

  test('sends no credential to another host, path or scheme', async () => {
    await setup();
    for (const url of [
      'https://github.com/acme/app.git',
      'https://broker.acme.example/other',
      'https://broker.acme.example/base/gitx/a/b',
      'http://broker.acme.example/base/git/acme/app.git',
    ])
      expect([url, credentialFor(url)]).toEqual([url, expect.not.objectContaining({ password: expect.anything() })]);
  });

  test('for named repositories: other repositories are unaffected, and rules that match more are reported', async () => {
    const { stdout } = await setup('acme/app', 'acme-labs/*');
    expect(stdout).toContain('acme/app-anything');
    expect(rewritten('https://github.com/acme/app')).toBe(`${BROKER}/git/acme/app`);
    expect(rewritten('https://github.com/acme-labs/x')).toBe(`${BROKER}/git/acme-labs/x`);
    expect(rewritten('https://github.com/other/app')).toBe('https://github.com/other/app');
  });

  test('--undo restores the file, and a second --undo is no error', async () => {
    const own = '[user]\n\tname = Ann\n[url "git@example.com:"]\n\tinsteadOf = https://example.com/\n';
    writeFileSync(join(home, '.gitconfig'), own);
    await setup();
    await setup('acme/app', '--connection', 'second');
    expect(config()).not.toBe(own);
    expect(credentialFor(`${BROKER}/git/acme/app`).username).toBe('connection.second');
    const { code, stdout } = await setup('--undo');
    expect(code).toBe(0);
    expect(stdout).toContain('removed');
    expect(config()).toBe(own);
    expect((await setup('--undo')).stdout).toContain('There is no setting');
  });

  test('--undo of the last repository removes the helper, too', async () => {
    await setup('acme/app', 'acme/lib');
    await setup('--undo', 'acme/app');
    expect(rewritten('https://github.com/acme/app')).toBe('https://github.com/acme/app');
    expect(rewritten('https://github.com/acme/lib')).toBe(`${BROKER}/git/acme/lib`);
    await setup('--undo', 'acme/lib');
    expect(config().trim()).toBe('');
  });

  test('a second run changes nothing', async () => {
    await setup('acme/app');
    const once = config();
    await setup('acme/app');
    expect(config()).toBe(once);
  });

  test('--dry-run changes nothing; --json prints the result as JSON', async () => {
    const { stdout } = await setup('--dry-run', '--json');
    expect(JSON.parse(stdout)).toMatchObject({ scope: 'global', broker: BROKER, dryRun: true, removed: [] });
    expect(config()).toBe('');
  });

  test.skipIf(notRoot)(
    `--local in a clone of another user prints the command that makes git accept the clone${rootNote}`,
    async () => {
      const clone = join(home, "ann's clone");
      execFileSync('git', ['init', '-q', clone]);
      chownSync(clone, 1, 1);
      const local = () => hosted(['git-setup', '--local'], { cwd: clone, env });
      const { code, stderr } = await local();
      expect([code, stderr]).toEqual([1, expect.stringContaining('belongs to another user')]);
      const [, command = ''] = /run "(git config [^"]+)"/.exec(stderr) ?? [];
      execFileSync('sh', ['-c', command], { env: { ...process.env, ...env } });
      expect((await local()).code).toBe(0);
    },
  );

  test('a profile with a malformed address is refused, and nothing is written', async () => {
    const { code, stderr } = await setup('--profile', machine.profileOf('agt_2', 'localhost:8787'));
    expect([code, stderr]).toEqual([1, expect.stringContaining('localhost:8787 is no http or https address')]);
    expect(config()).toBe('');
  });

  test('--local changes only one clone', async () => {
    const clone = join(home, 'clone');
    mkdirSync(clone);
    const outside = await hosted(['git-setup', '--local'], {
      cwd: clone,
      env: { ...env, GIT_CEILING_DIRECTORIES: home },
    });
    expect([outside.code, outside.stderr]).toEqual([1, expect.stringContaining('is no clone')]);
    execFileSync('git', ['init', '-q', clone]);
    expect((await hosted(['git-setup', '--local'], { cwd: clone, env })).code).toBe(0);
    expect(readFileSync(join(clone, '.git/config'), 'utf8')).toContain('insteadOf');
    expect(config()).toBe('');
  });

  test.each([
    [['acme'], 2, 'owner/repo'],
    [['acme/app/x'], 2, 'owner/repo'],
    [['--host', 'github.com'], 2, 'https://github.com'],
    [['--profile', '/nowhere/p.json'], 1, 'There is no agent profile'],
  ])('%j: exit code %i', async (words, code, said) => {
    const ran = await setup(...words);
    expect([ran.code, ran.stderr]).toEqual([code, expect.stringContaining(said)]);
    expect(config()).toBe('');
  });

  test('--host sends another code host to the broker', async () => {
    await setup('--host', 'https://git.acme.example:8443');
    expect(rewritten('https://git.acme.example:8443/acme/app')).toBe(`${BROKER}/git/acme/app`);
    expect(rewritten('https://github.com/acme/app')).toBe('https://github.com/acme/app');
  });
});

describe('git-credential', () => {
  const asked = (attributes: Record<string, string>) =>
    `${Object.entries(attributes)
      .map(([key, value]) => `${key}=${value}`)
      .join('\n')}\n\n`;
  const GOVERNED = { protocol: 'https', host: 'broker.acme.example', path: 'base/git/acme/app.git' };
  const answer = (attributes: Record<string, string>) =>
    answerGit(asked(attributes), BROKER, (seconds) => `jwt-${seconds}`, 1_000_000);

  test('the token lives for 300 seconds, and git gets its expiry', () => {
    expect(answer(GOVERNED)).toBe('username=agent\npassword=jwt-300\npassword_expiry_utc=1300\n');
    expect(answer({ ...GOVERNED, username: 'connection.work' })).toContain('username=connection.work\n');
    expect(answer({ ...GOVERNED, username: 'ann' })).toContain('username=agent\n');
  });

  test.each([
    { protocol: 'http' },
    { host: 'broker.acme.example.evil.example' },
    { host: 'broker.acme.example:8443' },
    { path: 'base/owner/agents' },
    { path: 'base/git/../owner' },
    { path: 'base/git/%2e%2e/owner' },
    { path: 'git/acme/app.git' },
    { path: '' },
  ])('returns no credential for %j', (other) => {
    expect(answer({ ...GOVERNED, ...other })).toBe('');
  });

  test('store, erase, and unknown operations do nothing', async () => {
    for (const operation of ['store', 'erase', 'capability']) {
      const { code, stdout, stderr } = await runCommand(['git-credential', operation], {
        cwd: home,
        env,
        input: asked(GOVERNED),
      });
      expect([code, stdout, stderr]).toEqual([0, '', '']);
    }
  });

  test('without a profile fails with a reason, and keeps git from prompting', async () => {
    const { AGENT_BROKER_PROFILE: _, ...without } = env;
    const { code, stdout, stderr } = await runCommand(['git-credential', 'get'], {
      cwd: home,
      env: without,
      input: asked(GOVERNED),
    });
    expect([code, stdout, stderr]).toEqual([1, 'quit=1\n', expect.stringContaining('There is no agent profile')]);
  });
});
