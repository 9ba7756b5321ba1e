/** What `connect` and `agent create` grant: short names, presets and limits, checked by the broker before anything is created. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { jsonRequest } from '../world/agent.ts';
import { commandHost, type Served, startServe } from '../world/command.ts';
import { startBearerProxy } from '../world/servers/bearer-proxy.ts';
import { startGitHub } from '../world/servers/github-server.ts';
import { newFolder } from '../world/stores.ts';
import { shared } from '../world/world.ts';

const TOKEN = 'ghp_0123456789abcdefghij0123456789abcdef';

const folder = newFolder();
const hosted = commandHost();
const data = join(folder, 'data');
let served: Served;
/** An owner session. */
let owner: string;

const github = shared(() => startGitHub(new Map([[TOKEN, 'repo']])));
beforeAll(async () => {
  const env = { AGENT_BROKER_DATA: data, AGENT_BROKER_ALLOW_PRIVATE: github.address };
  served = await startServe(['--print-link'], { cwd: folder, env });
  owner = (await run(['owner', 'token'])).stdout.trim();
});

const run = (words: readonly string[], input = '') =>
  hosted(words, { cwd: folder, env: { AGENT_BROKER_DATA: data, HOME: folder }, input });
const cursor = join(folder, '.cursor', 'mcp.json');
const names = async () =>
  (await ask('GET', '/owner/agents', owner)).body.agents.map((one: { name: string }) => one.name);

async function ask(method: string, path: string, token: string, body?: unknown) {
  const response = await fetch(served.url + path, jsonRequest(method, body, { authorization: `Bearer ${token}` }));
  // biome-ignore lint/suspicious/noExplicitAny: a test looks at whatever came.
  return { status: response.status, body: (await response.json()) as any };
}

describe('connect', () => {
  test('an unknown platform: lists the known platforms and the command that adds it, with --dry-run, too', async () => {
    for (const more of [[], ['--dry-run']]) {
      for (const [grant, says] of [
        ['github=issues', 'Add it: npx agent-broker add github\n'],
        ['codehost=issues', 'There is:\n  sandbox ('],
      ] as const) {
        const { code, stdout, stderr } = await run(['connect', 'cursor', '--grant', grant, ...more]);
        expect([code, stdout]).toEqual([1, '']);
        expect(stderr).toContain(says);
        expect(stderr).toContain('npx agent-broker add NAME');
      }
    }
    expect([existsSync(cursor), await names()]).toEqual([false, ['sandbox-agent']]);
    const added = await run(['add', 'github', '--base-url', github.api, '--token-stdin'], TOKEN);
    expect([added.code, added.stderr]).toEqual([0, '']);
  });

  test.each([
    [
      ['--grant', 'codehost=isues'],
      1,
      /no scope or preset "isues"\. Did you mean "issues"[\s\S]*Presets:\n {2}read: [\s\S]*Scopes: /,
    ],
    [['--grant', 'codehost=issues', '--policy', 'none'], 1, /no policy "none"\. There are: /],
    [['--grant', 'codehost=issues', '--name', 'sandbox-agent'], 1, /an agent "sandbox-agent" already/],
    [['--grant', 'codehost=issues', '--repos', 'acme'], 1, /is no repository/],
    [['--grant', 'codehost=issues', '--expires', '30'], 2, /write a time span such as "30d"/],
    [['--grant', 'codehost=issues', '--expires', '2020-01-01T00:00:00Z'], 2, /is over/],
    [['--grant', 'sandbox=issues.read', '--repos', 'acme/*'], 2, /--repos limits nothing here: no call of sandbox has/],
    [['--grant', 'codehost=issues', '--recipients', 'a@b.example'], 2, /--recipients limits nothing/],
    [['--repos', 'acme/*'], 2, /limit a --grant/],
    [['--grant', 'codehost'], 2, /Write it as platform=preset/],
    [['--name', 'bad !!'], 2, /is not a valid agent name/],
  ])('%j creates nothing', async (words, code, says) => {
    // Only the broker checks repository names, when the grant is created; --dry-run creates none.
    const isChecked = !words.includes('acme');
    for (const more of isChecked ? [[], ['--dry-run']] : [[]]) {
      const refused = await run(['connect', 'cursor', ...words, ...more]);
      expect([refused.code, refused.stdout]).toEqual([code, '']);
      expect(refused.stderr).toMatch(says);
    }
    expect([existsSync(cursor), await names()]).toEqual([false, ['sandbox-agent']]);
  });

  test('grants a preset on some repositories until an expiry, and the broker enforces it', async () => {
    const words = [
      'connect',
      'cursor',
      '--name',
      'cursor',
      '--grant',
      'github=issues',
      '--repos',
      'acme/*',
      '--expires',
      '30d',
    ];
    const dry = await run([...words, '--dry-run']);
    expect([dry.code, dry.stderr]).toEqual([0, '']);
    expect(dry.stdout).toContain(
      'On codehost (GitHub), issues: metadata.read, search.read, issues.read, issues.comment, issues.write',
    );
    expect(dry.stdout).toMatch(/repositories: acme\/\*; until 20\d\d-/);
    expect([existsSync(cursor), await names()]).toEqual([false, ['sandbox-agent']]);
    const made = await run([...words, '--json']);
    expect([made.code, made.stderr]).toEqual([0, '']);
    const { agent_id, profile, grants } = JSON.parse(made.stdout);
    expect(grants).toMatchObject([{ platformId: 'codehost', presets: ['issues'], repos: ['acme/*'] }]);
    const stored = (await ask('GET', `/owner/agents/${agent_id}/grants`, owner)).body.grants;
    expect(stored).toMatchObject([
      { platform: 'codehost', repos: ['acme/*'], recipients: null, require_approval: false },
    ]);
    const days = (Date.parse(stored[0].expires_at) - Date.now()) / 86_400_000;
    expect(days).toBeGreaterThan(29.9);
    expect(days).toBeLessThanOrEqual(30);
    const token = (await run(['token', '--profile', profile])).stdout.trim();
    const action = { platform: 'codehost', scope: 'codehost:issues.read', method: 'GET' };
    const call = (endpoint: string) => ask('POST', '/v1/actions', token, { ...action, endpoint });
    expect(await call('/repos/acme/shop/issues')).toMatchObject({ status: 200, body: { data: [{ title: 'Broken' }] } });
    expect(await call('/repos/other/shop/issues')).toMatchObject({ status: 403 });
    expect(readFileSync(cursor, 'utf8')).toContain(profile);
    const again = await run(words);
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining('there already')]);
  });

  test('states when a grant has no limit of repositories, and when there is no grant', async () => {
    const wide = await run(['agent', 'create', 'wide', '--grant', 'codehost=read,issues.write', '--require-approval']);
    expect(wide.stdout).toMatch(
      /On codehost \(GitHub\), read: .*issues\.write\n {2}every repository that .*every call needs an approval/,
    );
    const invited = await run([
      'agent',
      'invite',
      'far',
      '--grant',
      'codehost=review',
      '--repos',
      'acme/shop,acme/web',
    ]);
    expect(invited.stdout).toContain('repositories: acme/shop, acme/web');
    const none = await run(['connect', 'gemini', '--name', 'none']);
    expect(none.stdout).toContain('It is granted nothing yet');
  });

  test('with an invite: prints what the invite grants, and suggests no --grant, which an invite does not allow', async () => {
    const invite = async (name: string, ...terms: string[]) =>
      /inv_[\w-]+/.exec((await run(['agent', 'invite', name, ...terms])).stdout)![0];
    const connect = async (name: string, token: string, ...more: string[]) => {
      const connected = ['connect', 'cursor', '--name', name, '--url', served.url, '--invite', token, ...more];
      const { code, stdout, stderr } = await run(connected);
      expect(code, stderr).toBe(0);
      expect(stdout).not.toMatch(/granted nothing|--grant/);
      return stdout;
    };
    const granting = await invite('invited', '--grant', 'sandbox=issues.read');
    expect(await connect('invited', granting, '--dry-run')).not.toContain('it may');
    expect(await connect('invited', granting)).toContain('\nOn sandbox it may: issues.read\n');
    expect(await connect('bare', await invite('bare'))).toContain('\nIt may do nothing yet: ');
    const json = JSON.parse(await connect('third', await invite('third', '--grant', 'sandbox=issues.read'), '--json'));
    expect(json).toMatchObject({ permissions: [{ platformId: 'sandbox', scopes: ['sandbox:issues.read'] }] });
    expect(json.grants).toBeUndefined();
  });

  test('a read-only file is left as it is and no agent is created, also with --undo and through a symlink', async () => {
    const before = '{"mcpServers":{"agent-broker":{"command":"x"},"other":{"env":{"API_KEY":"CANARY"}}}}';
    const kept = join(folder, 'dotfiles.json');
    const file = join(folder, '.codeium', 'windsurf', 'mcp_config.json');
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(kept, before);
    chmodSync(kept, 0o444);
    symlinkSync(kept, file);
    const agents = await names();
    for (const more of [['--grant', 'codehost=issues'], ['--grant', 'codehost=issues', '--dry-run'], ['--undo']]) {
      const { code, stdout, stderr } = await run(['connect', 'windsurf', '--name', 'windsurf', ...more]);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toBe(
        `${file} is read-only (mode 0444), and was left as it is: make it writable, and try again.\n`,
      );
    }
    expect([readFileSync(kept, 'utf8'), statSync(kept).mode & 0o777, readdirSync(dirname(file))]).toEqual([
      before,
      0o444,
      ['mcp_config.json'],
    ]);
    expect(await names()).toEqual(agents);
    chmodSync(kept, 0o644);
    expect((await run(['connect', 'windsurf', '--undo'])).code).toBe(0);
    expect(JSON.parse(readFileSync(kept, 'utf8'))).toEqual({ mcpServers: { other: { env: { API_KEY: 'CANARY' } } } });
  });

  test('a folder that cannot be written is reported before an agent is created', async () => {
    const agents = await names();
    // A file in the folder's place, and a file system without new files (/proc): root cannot write there either.
    const file = join(folder, 'file');
    writeFileSync(file, '');
    for (const home of [file, ...(process.platform === 'linux' ? ['/proc'] : [])]) {
      const refused = await hosted(['connect', 'codex', '--name', 'nowhere', '--grant', 'codehost=issues'], {
        cwd: folder,
        env: { AGENT_BROKER_DATA: data, HOME: folder, CODEX_HOME: join(home, 'codex') },
      });
      expect([refused.code, refused.stdout]).toEqual([1, '']);
      expect(refused.stderr).toMatch(/codex\/config\.toml cannot be written \((?:ENOTDIR|ENOENT|EACCES)\)\.\n$/);
    }
    expect([await names(), existsSync(join(data, 'profiles', 'nowhere.json'))]).toEqual([agents, false]);
  });

  test('when writing fails after the agent was created, the error names the agent, and how to connect or revoke it', async () => {
    const file = join(folder, '.codex', 'config.toml');
    // Another program writes the file while the key is bound.
    const between = await startBearerProxy(
      served.url,
      async () => owner,
      async (body) => {
        if (!body.includes('public_key_pem')) return;
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, 'model = "x"\n');
      },
    );
    const made = await run(['connect', 'codex', '--name', 'late', '--url', between, '--owner-token', owner]);
    expect([made.code, made.stdout]).toEqual([1, '']);
    expect(made.stderr).toContain(`${file} was changed concurrently`);
    const [, id] = /The agent (agt_\w+) was created nevertheless/.exec(made.stderr) ?? [];
    const commands = [...made.stderr.matchAll(/: npx agent-broker (.+)$/gm)].map(([, words]) => words!.split(' '));
    expect(commands).toEqual([
      ['connect', 'codex', '--profile', join(data, 'profiles', 'late.json')],
      ['agent', 'revoke', id, '--url', between],
    ]);
    expect(await names()).toContain('late');
    // Without a terminal, revoke needs --yes; and no message repeats the session that was given.
    const given = (words: string[]) => (words.includes('revoke') ? [...words, '--yes', '--owner-token', owner] : words);
    for (const words of commands) expect(await run(given(words))).toMatchObject({ code: 0, stderr: '' });
    expect(readFileSync(file, 'utf8')).toContain('model = "x"\n');
  });

  test('--dry-run needs the broker: the error says when none is running', async () => {
    const away = await hosted(['connect', 'opencode', '--dry-run', '--grant', 'codehost=issues'], {
      cwd: folder,
      env: { AGENT_BROKER_DATA: join(folder, 'none'), HOME: folder },
    });
    expect([away.code, away.stderr]).toEqual([1, expect.stringContaining('No broker is running')]);
  });

  test('a damaged file of the running broker is named, with what to do', async () => {
    const path = join(folder, 'damaged', 'run', 'broker.json');
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, '{ "url"');
    const { code, stderr } = await hosted(['agent', 'list'], {
      cwd: folder,
      env: { AGENT_BROKER_DATA: join(folder, 'damaged'), HOME: folder },
    });
    expect([code, stderr]).toEqual([1, expect.stringContaining('broker.json cannot be read. The broker writes it')]);
  });
});
