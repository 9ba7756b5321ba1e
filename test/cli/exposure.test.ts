/** `agent-broker doctor --exposure` in a fake home: every credential is named, and no value is printed. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createSocket } from 'node:net';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { recognise } from '../../bin/exposure/key-forms.ts';
import { isCredential } from '../../bin/exposure/variables.ts';
import { commandHost } from '../world/command.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { newFolder } from '../world/stores.ts';

/** Part of every fake credential; must not appear in any output. */
const MARK = 'S3CRETmark';

let home: string;
let cwd: string;
const hosted = commandHost();
beforeEach(() => {
  home = newFolder();
  cwd = join(home, 'work/app');
  mkdirSync(cwd, { recursive: true });
});

const put = (path: string, text: string): string => {
  const file = join(home, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
};
const look = async (env: Record<string, string> = {}, ...words: string[]) => {
  const clean = { HOME: home, GIT_CONFIG_NOSYSTEM: '1', PATH: process.env.PATH ?? '', ...env };
  const { code, stdout, stderr } = await hosted(['doctor', '--exposure', ...words], { cwd, env: clean });
  expect(`${stdout}${stderr}`).not.toContain(MARK);
  return { code, stdout, stderr };
};
type Found = { kind: string; where: string; what: string; advice: string };
const findings = async (env: Record<string, string> = {}, ...words: string[]): Promise<Found[]> => {
  const { code, stdout } = await look(env, '--json', ...words);
  const told = JSON.parse(stdout);
  expect([told.ok, code]).toEqual(told.findings.length === 0 ? [true, 0] : [false, 1]);
  for (const one of told.findings) expect(one.advice).toMatch(/^\S.{15,}\.$|"\.$/s);
  return told.findings;
};

test('a home without credentials: nothing is found, and the exit code is 0', async () => {
  put('work/app/.env.example', `OPENAI_API_KEY=sk-${MARK}${'a'.repeat(24)}`);
  put('.npmrc', `registry=https://registry.npmjs.org/\n//r.example/:_authToken=\${NPM_TOKEN}\n`);
  put('.ssh/id_ed25519.pub', 'ssh-ed25519 AAAA');
  put('.yarnrc.yml', `nodeLinker: node-modules\nnpmAuthToken: "\${NPM_TOKEN-}"\n`);
  put('.bunfig.toml', '[install]\nregistry = { url = "https://r.example", token = "$NPM_TOKEN" }\n');
  put('.config/rclone/rclone.conf', '[store]\ntype = s3\nenv_auth = true\nsecret_access_key =\n');
  put('.aws/config', '[default]\nregion = eu-west-1\n');
  put(
    '.gitconfig',
    '[credential "https://broker.example/git"]\n\thelper = \n\thelper = !agent-broker git-credential --profile x\n',
  );
  const { code, stdout } = await look({ EDITOR: 'vi', TOKEN: 'short', SECRETS: 'true' }, '--', 'make', 'all');
  expect(stdout).toBe(
    'Nothing was found that make all could use without the broker.\nThe metadata address of a cloud, which may give a machine credentials, was not queried: add --metadata.\n',
  );
  expect(code).toBe(0);
  expect(JSON.parse((await look({}, '--json')).stdout)).toEqual({ ok: true, findings: [], metadata: 'not asked' });
  // Nothing listens on port 9 (discard).
  const asked = await look({}, '--metadata', '127.0.0.1:9', '--', 'make', 'all');
  expect(asked.stdout).toBe('Nothing was found that make all could use without the broker.\n');
  const inJson = await look({}, '--json', '--metadata', '127.0.0.1:9');
  expect(JSON.parse(inJson.stdout)).toEqual({ ok: true, findings: [], metadata: 'asked' });
});

test('a credential helper of another program is reported, even when its subcommand is git-credential like ours', async () => {
  for (const [helper, program] of [
    ['!/usr/bin/gh auth git-credential', 'a script'],
    ['!glab auth git-credential', 'a script'],
    ['store', 'store'],
  ] as const) {
    put('.gitconfig', `[credential "https://github.com"]\n\thelper = ${helper}\n`);
    const { code, stdout } = await look({}, '--', 'make');
    expect(stdout).toContain(`git gets passwords from ${program}`);
    expect(code).toBe(1);
  }
  for (const own of [
    '!npx -y agent-broker git-credential',
    "!/usr/bin/node '/opt/a b/bin/agent-broker.js' git-credential --at https://b.example",
  ]) {
    put('.gitconfig', `[credential "https://github.com"]\n\thelper = "${own}"\n`);
    expect((await look({}, '--', 'make')).stdout).toContain('Nothing was found');
  }
});

describe('variables', () => {
  test.each<[string, string, string]>([
    ['GITHUB_TOKEN', `ghp_${MARK}${'a'.repeat(26)}`, 'GitHub'],
    ['ANY', `github_pat_${MARK}_${'a'.repeat(20)}`, 'GitHub'],
    ['GH_TOKEN', `of-a-new-form-${MARK}`, 'GitHub'],
    ['OPENAI_API_KEY', `sk-proj-${MARK}${'a'.repeat(24)}`, 'OpenAI'],
    ['MODEL', `sk-ant-api03-${MARK}aaaaaaaa`, 'Anthropic'],
    ['PAY', `sk_live_${MARK}aaaa`, 'Stripe'],
    ['CHAT', `xoxb-1234-${MARK}`, 'Slack'],
    ['NPM_TOKEN', `npm_${MARK}${'a'.repeat(26)}`, 'npm'],
    ['AWS_SECRET_ACCESS_KEY', `${MARK}/aaaa`, 'AWS'],
    ['GITLAB', `glpat-${MARK}aaaaaaaa`, 'GitLab'],
    ['HF', `hf_${MARK}${'a'.repeat(20)}`, 'Hugging Face'],
    ['DATABASE', `postgres://app:${MARK}@db.example/app`, 'a URL with a password'],
    ['PEM', `-----BEGIN RSA PRIVATE KEY-----\n${MARK}`, 'a key pair'],
    ['ACME_API_KEY', `${MARK}`, 'a credential, by its name'],
    ['WEB_IDENTITY_TOKEN_FILE', `/run/secrets/${MARK}`, 'a path to a credential, by its name'],
  ])('%s', (name, value, platform) => {
    expect(recognise(name, value)?.platform).toBe(platform);
  });

  test.each([
    ['HOME', '/root'],
    ['EDITOR', 'task-runner-of-the-organisation'],
    ['TOKEN', ''],
    ['API_KEY', 'unset'],
    ['URL', 'https://user@host.example/'],
    ['TOKENIZERS_PARALLELISM', 'false-or-true'],
  ])('%s is no credential', (name, value) => {
    expect(recognise(name, value)).toBeUndefined();
  });

  test('are reported with their platform and how to put it behind the broker', async () => {
    const env = { GITHUB_TOKEN: `ghp_${MARK}${'a'.repeat(26)}`, CRM_SECRET: `${MARK}` };
    const found = await findings(env);
    expect(found).toMatchObject([
      {
        kind: 'variable',
        where: 'GITHUB_TOKEN',
        what: 'a key of GitHub',
        advice: expect.stringContaining('add github'),
      },
      { kind: 'variable', where: 'CRM_SECRET', advice: expect.stringContaining('--strict') },
    ]);
    const { stdout } = await look(env, '--', 'npm', 'test');
    expect(stdout).toContain('GITHUB_TOKEN\n    a key of GitHub\n');
    expect(stdout).toContain('2 found that npm test could use');
    expect(stdout).toContain('agent-broker run --strict -- npm test');
    expect(stdout).toContain('was not queried: add --metadata.');
  });

  test('placeholders set by "run" are not reported', async () => {
    const placeholder = 'A'.repeat(32);
    const env = { AGENT_BROKER_RUN_KEY: placeholder, GITHUB_TOKEN: `ghp_${placeholder}` };
    expect(await findings(env)).toEqual([]);
  });
});

test('reports files of tools, in the home folder and in the parents of the working directory', async () => {
  const files: [string, string, string][] = [
    [
      '.config/gh/hosts.yml',
      `github.com:\n    oauth_token: gho_${MARK}\n    user: ann\n`,
      'the sign-in of gh for github.com',
    ],
    ['.netrc', `machine api.example login ann password ${MARK}\n`, 'passwords for api.example'],
    [
      '.npmrc',
      `//registry.npmjs.org/:_authToken=${MARK}\n`,
      'tokens of registries in //registry.npmjs.org/:_authToken',
    ],
    ['work/.npmrc', `_auth = ${MARK}\n`, 'tokens of registries in _auth'],
    [
      'work/.env',
      `# a\nexport OPENAI_API_KEY="sk-${MARK}${'a'.repeat(24)}"\nPORT=1\n`,
      'variables OPENAI_API_KEY (OpenAI)',
    ],
    ['work/app/.env.local', `CRM_PASSWORD='${MARK}'\n`, 'variables CRM_PASSWORD (a credential, by its name)'],
    ['.aws/credentials', `[default]\naws_secret_access_key = ${MARK}\n[prod]\n`, 'keys of AWS of default, prod'],
    ['.aws/sso/cache/1.json', `{"accessToken":"${MARK}"}`, 'a session of AWS'],
    [
      '.kube/config',
      `clusters:\n- cluster:\n    server: https://ann:${MARK}@k8s.example\nusers:\n- user:\n    token: ${MARK}\n`,
      'credentials of clusters for k8s.example',
    ],
    ['.docker/config.json', `{"auths":{"r.example":{"auth":"${MARK}"}}}`, 'sign-ins to registries in the file'],
    ['.config/gcloud/application_default_credentials.json', `{"x":"${MARK}"}`, 'a sign-in to Google Cloud'],
    ['.git-credentials', `https://ann:${MARK}@${MARK}@git.example\n`, 'passwords that git stored for git.example'],
    [
      '.ssh/id_work',
      `-----BEGIN OPENSSH PRIVATE KEY-----\n${MARK}\n`,
      'a private key of SSH as it is, or with a passphrase',
    ],
    ['.config/pnpm/auth.ini', `//r.example/:_authToken=${MARK}\n`, 'tokens of registries in //r.example/:_authToken'],
    ['.config/pnpm/config.yaml', `_auth:\n  - token: ${MARK}\n`, 'tokens of registries in _auth'],
    ['work/.yarnrc.yml', `npmAuthToken: "${MARK}"\n`, 'tokens of registries in npmAuthToken'],
    [
      'work/app/bunfig.toml',
      `[install.scopes]\nacme = { token = "${MARK}", url = "https://r.example" }\n`,
      'tokens of registries in token',
    ],
    [
      '.config/rclone/rclone.conf',
      `[store]\ntype = s3\nsecret_access_key = ${MARK}\n[drive]\n`,
      'keys of stores of objects of store, drive',
    ],
    ['.s3cfg', `[default]\naccess_token =\nsecret_key = ${MARK}\n`, 'keys of stores of objects of default'],
    ['.mc/config.json', `{"aliases":{"a":{"secretKey":"${MARK}"}}}`, 'keys of stores of objects in the file'],
    ['.vault-token', MARK, 'a sign-in of a tool'],
    ['.gemini/oauth_creds.json', `{"x":"${MARK}"}`, 'a sign-in of a tool'],
    ['.config/github-copilot/apps.json', `{"x":"${MARK}"}`, 'a sign-in of a tool'],
    ['.local/share/opencode/auth.json', `{"x":"${MARK}"}`, 'a sign-in of a tool'],
    ['work/app/.agent-broker/profiles/default.json', `{"private_key":"${MARK}"}`, 'the private key of an agent'],
    ['work/app/.agent-broker/keys/master.key', MARK, 'a key of the broker itself'],
  ];
  for (const [path, text] of files) put(path, text);
  const found = await findings();
  expect(found.map(({ kind, where, what }) => [kind, where, what]).sort()).toEqual(
    files.map(([path, , what]) => ['file', join(home, path), what]).sort(),
  );
  const moved = {
    KUBECONFIG: put('elsewhere.yaml', `users: [{ user: { exec: { command: x } } }]`),
    NETRC: join(home, 'none'),
  };
  const there = (await findings(moved)).map(({ where }) => where);
  expect(there).toContain(moved.KUBECONFIG);
  expect(there).not.toContain(join(home, '.kube/config'));
  expect(there).not.toContain(join(home, '.netrc'));
});

test('reports files of tools at their paths on Windows and macOS', async () => {
  const token = `token: ${MARK}\n`;
  const files = [
    put('AppData/Roaming/GitHub CLI/hosts.yml', `github.com:\n    oauth_token: ${MARK}\n`),
    put('AppData/Roaming/gcloud/credentials.db', MARK),
    put('AppData/Roaming/rclone/rclone.conf', `[store]\nsecret_access_key = ${MARK}\n`),
    put('AppData/Local/github-copilot/apps.json', `{"token":"${MARK}"}`),
    put('AppData/Local/pnpm/config/rc', `//r.example/:_authToken=${MARK}\n`),
    put('_netrc', `machine r.example login me password ${MARK}\n`),
    put('Library/Application Support/doctl/config.yaml', token),
    put('Library/Preferences/helm/registry/config.json', token),
  ];
  const env = { APPDATA: join(home, 'AppData/Roaming'), LOCALAPPDATA: join(home, 'AppData/Local') };
  expect((await findings(env)).map(({ where }) => where).toSorted()).toEqual(files.toSorted());
});

test('a pipe or folder in the place of a file is skipped without waiting', async () => {
  execFileSync('mkfifo', [join(home, '.netrc')]);
  mkdirSync(join(home, '.npmrc'));
  expect(await findings()).toEqual([]);
});

test('reports credentials in the configuration of git (remotes, rules, headers) without printing them', async () => {
  execFileSync('git', ['init', '-q'], { cwd });
  const key = `ghp_${MARK}${'a'.repeat(26)}`;
  put(
    '.gitconfig',
    `[url "https://x:${key}@github.com/"]\n\tinsteadOf = https://github.com/\n[http]\n\tproxy = http://ann:${MARK}@proxy.example:3128\n`,
  );
  for (const [name, value] of [
    ['remote.origin.url', `https://${key}@github.com/acme/app`],
    ['remote.other.url', 'https://ann@github.com/acme/app'],
    ['http.https://github.com/.extraheader', `AUTHORIZATION: basic ${MARK}`],
    ['http.extraheader', 'X-Trace: 1'],
  ] as const)
    execFileSync('git', ['config', '--add', name, value], { cwd });
  const found = await findings();
  expect(found.map(({ kind, where, what }) => [kind, where, what])).toEqual([
    ['setting', 'url.https://…@github.com/.insteadof', 'a key of GitHub, in the configuration of git'],
    ['setting', 'http.proxy', 'a URL with a password, in the configuration of git'],
    ['setting', 'remote.origin.url', 'a key of GitHub, in the configuration of git'],
    ['setting', 'http.https://github.com/.extraheader', 'a header with a credential, which git sends'],
  ]);
});

test('reports credential helpers of git, an SSH agent, and a metadata address that answers', async () => {
  put(
    '.gitconfig',
    `[credential]\n\thelper = store --file ${MARK}\n[credential "https://git.example"]\n\thelper = "!echo password=${MARK}"\n`,
  );
  const socket = join(home, 'agent.sock');
  const agent = createSocket().listen(socket);
  const cloud = createServer((_, response) => response.writeHead(401).end('no'));
  const port = await listenOnLoopback(cloud);
  afterFile(() => void agent.close());
  const host = `127.0.0.1:${port}`;
  const env = { SSH_AUTH_SOCK: socket };
  expect(await findings(env, '--metadata', host)).toMatchObject([
    { kind: 'helper', where: 'credential.helper', what: 'git gets passwords from store' },
    { kind: 'helper', where: 'credential.https://git.example.helper', what: 'git gets passwords from a script' },
    { kind: 'socket', where: socket },
    { kind: 'address', where: `http://${host}/` },
  ]);
  cloud.closeAllConnections();
  await new Promise((done) => cloud.close(done));
  expect((await findings(env, '--metadata', host)).map(({ kind }) => kind)).toEqual(['helper', 'helper', 'socket']);
});

test('a command without --exposure is wrong usage', async () => {
  const { code, stderr } = await hosted(['doctor', '--', 'ls'], { cwd, env: { HOME: home } });
  expect([code, stderr]).toEqual([2, expect.stringContaining('--exposure')]);
});

test('the advice for a variable says truthfully whether run --strict leaves it out', async () => {
  const env = {
    ...{ GH: `ghp_${MARK}${'a'.repeat(30)}`, AZURE_STORAGE_KEY: `${MARK}${'a'.repeat(30)}` },
    HTTPS_PROXY: `http://me:${MARK}@proxy.example:3128`,
  };
  const found = Object.fromEntries((await findings(env)).map(({ where, advice }) => [where, advice]));
  expect(Object.keys(found).sort()).toEqual(Object.keys(env).sort());
  for (const [name, value] of Object.entries(env)) {
    expect(isCredential(name, value), name).toBe(name !== 'HTTPS_PROXY');
    expect(found[name]).toContain(name === 'HTTPS_PROXY' ? 'run keeps it.' : '--strict leaves it out');
  }
});
