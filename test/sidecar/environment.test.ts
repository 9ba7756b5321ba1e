/** Which connection the variables of a tool use, and what happens to variables that were set before. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { isCredential } from '../../bin/exposure/variables.ts';
import { withoutEnclosingRun } from '../../mcp/sidecar/enclosing-run.ts';
import { choose, codehostOf, environmentFor, type Granted, grantedOf } from '../../mcp/sidecar/environment.ts';
import { readGitRules } from '../../mcp/sidecar/git-rules.ts';
import { addressOf, originOf, type PlatformAddress, platformAddresses } from '../../mcp/sidecar/platform-address.ts';
import { proxyVariables } from '../../mcp/sidecar/proxy-variables.ts';
import { TOOLS } from '../../mcp/sidecar/tools.ts';
import { ROOT } from '../world/checkout.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';

const granted = (name: string, platform: string, platformName = platform, isDefault = false): Granted => ({
  ...{ name, platform, platformName, isDefault },
});
const run = (connections: readonly Granted[]) => ({
  ...{ url: 'http://127.0.0.1:7', placeholder: 'KEY', folder: '/f', socket: undefined, isStrict: false },
  ...{ chosen: choose(connections), codeHosts: ['https://github.com/'], isCredential },
});

describe('the connection of a tool', () => {
  test('is the default connection of the platform with the usual id, before others of the same built-in platform', () => {
    const others = [granted('eu', 'openai-eu', 'OpenAI', true), granted('two', 'openai', 'OpenAI')];
    const [chosen] = choose([...others, granted('one', 'openai', 'OpenAI', true)]);
    expect(chosen?.connection.name).toBe('one');
    expect(chosen?.others.map(({ name }) => name)).toEqual(['two', 'eu']);
    expect(choose(others.slice(0, 1))[0]?.connection.name).toBe('eu');
    expect(choose([granted('crm', 'crm')])).toEqual([]);
  });

  test('for git is one of the platform codehost only', () => {
    expect(codehostOf(choose([granted('gh', 'codehost')]))).toBe('gh');
    expect(codehostOf(choose([granted('gh', 'our-github', 'GitHub')]))).toBeUndefined();
  });

  test('is named by its id when it has no label, and connections of MCP servers are excluded', () => {
    const one = { scopes: [], requireApproval: false };
    const connection = { ...one, connection_id: 'id-1', label: null, status: 'active' as const, default: true };
    const platforms = [
      { ...one, platformId: 'crm', platformName: 'CRM', connections: [connection] },
      { ...one, platformId: 'docs', platformName: 'Docs', serverName: 'docs', connections: [connection] },
      { ...one, platformId: 'bare', platformName: 'Bare' },
    ];
    const permissions = { agent: { id: 'a', name: 'a' }, platforms, version: '1' };
    expect(grantedOf(permissions)).toEqual([granted('id-1', 'crm', 'CRM', true)]);
  });
});

describe('the environment', () => {
  test('has a valid URL for a label with any characters', () => {
    const { environment } = environmentFor({}, run([granted('a b/ü', 'openai')]));
    expect(environment.OPENAI_BASE_URL).toBe('http://127.0.0.1:7/proxy/a%20b%2F%C3%BC');
  });

  test('has the variables of Octokit for Ruby, which appends paths to the address without a slash', () => {
    const { environment } = environmentFor({ OCTOKIT_BEARER_TOKEN: 'own' }, run([granted('gh', 'codehost')]));
    expect(environment).toMatchObject({
      OCTOKIT_API_ENDPOINT: 'http://127.0.0.1:7/proxy/gh/',
      OCTOKIT_ACCESS_TOKEN: 'ghp_KEY',
    });
    expect(environment).not.toHaveProperty('OCTOKIT_BEARER_TOKEN');
  });

  test('has a kubeconfig whose plain HTTP @kubernetes/client-node accepts', () => {
    const { files } = environmentFor({}, run([granted('k', 'kubernetes')]));
    const { clusters } = JSON.parse(files.kubeconfig ?? '');
    // Its KubeConfig.applyToFetchOptions throws for an http server unless certificates are not verified.
    expect(clusters).toEqual([
      {
        name: 'broker',
        cluster: { server: 'http://127.0.0.1:7/~KEY/proxy/k', 'insecure-skip-tls-verify': true },
      },
    ]);
  });

  test('has git settings only with a code host, and adds to existing ones', () => {
    const parent = { GIT_CONFIG_COUNT: '2' };
    expect(environmentFor(parent, run([granted('o', 'openai')])).environment.GIT_CONFIG_COUNT).toBe('2');
    const { environment } = environmentFor(parent, run([granted('gh', 'codehost')]));
    expect(environment).toMatchObject({
      GIT_CONFIG_COUNT: '7',
      GIT_CONFIG_KEY_3: 'http.http://github.com/.proxy',
      GIT_CONFIG_VALUE_3: 'http://127.0.0.1:7',
      // Without the proxy, git must not follow the code host to https.
      GIT_CONFIG_KEY_4: 'http.http://github.com/.followRedirects',
      GIT_CONFIG_VALUE_4: 'false',
      GIT_CONFIG_KEY_6: 'url.http://github.com/.insteadOf',
      GIT_CONFIG_VALUE_6: 'https://github.com/',
      CARGO_NET_GIT_FETCH_WITH_CLI: 'true',
    });
  });

  test('excludes the sidecar from proxies of the environment and of settings, and sets no proxy', () => {
    const connections = run([granted('o', 'openai')]);
    const { environment } = environmentFor({ HTTPS_PROXY: 'http://p', no_proxy: 'x.example' }, connections);
    expect(environment).toMatchObject({
      HTTPS_PROXY: 'http://p',
      no_proxy: 'x.example,127.0.0.1,localhost',
      NO_PROXY: 'x.example,127.0.0.1,localhost',
    });
    const direct = { no_proxy: '127.0.0.1,localhost', NO_PROXY: '127.0.0.1,localhost' };
    expect(environmentFor({}, connections).environment).toMatchObject(direct);
    expect(environmentFor({ NO_PROXY: '*' }, connections).environment).toMatchObject({ no_proxy: '*', NO_PROXY: '*' });
  });
});

test('an enclosing run on Windows, where no socket names its folder, leaves no path of its files', () => {
  const folder = String.raw`C:\Users\ann\AppData\Local\Temp\agent-broker-run-0f3a9c1e-aB3xYz`;
  const chosen = choose([granted('gh', 'codehost'), granted('k', 'kubernetes'), granted('n', 'npm')]);
  const gitRules = { system: undefined, rules: [], withUser: [] };
  const own = { HOME: String.raw`C:\Users\ann`, NOTES: String.raw`C:\agent-broker-run-notes\a.txt` };
  const outer = environmentFor(own, { ...run([]), chosen, folder, gitRules }).environment;
  expect(outer.KUBECONFIG).toContain(folder);
  expect(outer.GIT_CONFIG_SYSTEM).toContain(folder);
  const roots = { SSL_CERT_FILE: `${folder}/roots.pem` };
  const inner = withoutEnclosingRun({ ...outer, ...roots });
  expect(Object.entries(inner).filter(([, value]) => value?.includes(folder))).toEqual(Object.entries(roots));
  expect(inner).toMatchObject(own);
});

describe("the system's configuration of git", () => {
  // git-config(1), Values: how git spells booleans, in any letter case.
  test.each<[string | undefined, boolean]>([
    ...[undefined, '', '0', '00', 'false', 'No', 'OFF'].map((value): [typeof value, boolean] => [value, true]),
    ...['1', 'true', 'Yes', 'on', '2'].map((value): [string, boolean] => [value, false]),
  ])('is read as git reads it, with GIT_CONFIG_NOSYSTEM %j', async (value, isRead) => {
    const folder = mkdtempSync(join(tmpdir(), 'git-rules-'));
    try {
      const system = join(folder, 'system');
      writeFileSync(system, '[core]\n\tpager = cat\n');
      const env = { PATH: process.env.PATH, HOME: folder, GIT_CONFIG_SYSTEM: system };
      const rules = await readGitRules(value === undefined ? env : { ...env, GIT_CONFIG_NOSYSTEM: value });
      expect(rules?.system).toBe(isRead ? system : undefined);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

test('an enclosing run leaves nothing but root certificates, and git keeps its own numbered settings', () => {
  const own = { HOME: '/root', OPENAI_API_KEY: 'sk-own', no_proxy: '127.0.0.1,localhost' };
  expect(withoutEnclosingRun(own)).toBe(own);
  const chosen = choose([
    granted('o', 'openai'),
    granted('gh', 'codehost'),
    granted('k', 'kubernetes'),
    granted('n', 'npm'),
  ]);
  const outer = environmentFor(
    { ...own, GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'core.pager', GIT_CONFIG_VALUE_0: 'cat' },
    { ...run([]), chosen, url: 'http://127.0.0.1:4711', placeholder: 'PLACEHOLDER', folder: '/tmp/run-x' },
  ).environment;
  const parent = {
    ...outer,
    ...{ AGENT_BROKER_RUN_SOCKET: '/tmp/run-x/socket', SSL_CERT_FILE: '/tmp/run-x/roots.pem' },
    ...{ HTTPS_PROXY: 'http://run:PLACEHOLDER@127.0.0.1:4711', GIT_CONFIG_SYSTEM: '/tmp/run-x/gitconfig' },
  };
  expect(withoutEnclosingRun(parent)).toEqual({
    ...{
      HOME: '/root',
      no_proxy: '127.0.0.1,localhost',
      NO_PROXY: '127.0.0.1,localhost',
      SSL_CERT_FILE: '/tmp/run-x/roots.pem',
    },
    ...{ GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'core.pager', GIT_CONFIG_VALUE_0: 'cat' },
    ...{ YARN_UNSAFE_HTTP_WHITELIST: '127.0.0.1', npm_config_replace_registry_host: 'always' },
    CARGO_NET_GIT_FETCH_WITH_CLI: 'true',
  });
});

describe('variables that look like credentials', () => {
  const credentials = {
    ...{ DEPLOY_TOKEN: 'x', GH: `ghp_${'a'.repeat(36)}`, PAYMENTS: `sk_live_${'a'.repeat(24)}` },
    ...{ DATABASE_URL: 'postgres://app:password@db.example/app', AZURE_STORAGE_KEY: 'a'.repeat(40) },
  };
  const needed = {
    ...{ https_proxy: 'http://me:password@proxy.example:3128', GIT_CONFIG_COUNT: '1' },
    ...{ GIT_CONFIG_KEY_0: `url.https://x:ghp_${'a'.repeat(36)}@github.com/.insteadOf`, GIT_CONFIG_VALUE_0: 'gh:' },
  };
  const parent = { ...credentials, ...needed, HOME: '/root', TOKENIZER: 'bpe' };

  test('are listed, and removed in strict mode, by their names and by their content', () => {
    const kept = environmentFor(parent, run([]));
    expect(kept.kept.sort()).toEqual(Object.keys(credentials).sort());
    expect(kept.environment).toMatchObject(parent);
    const strict = environmentFor(parent, { ...run([]), isStrict: true });
    expect(strict.kept).toEqual([]);
    expect(Object.keys(strict.environment).filter((name) => name in credentials)).toEqual([]);
    expect(strict.environment).toMatchObject({ ...needed, HOME: '/root', TOKENIZER: 'bpe' });
  });

  test('take no long time to find in a long value', () => {
    const startedAt = Date.now();
    expect(isCredential('LONG', 'a.'.repeat(60_000))).toBe(false);
    expect(Date.now() - startedAt).toBeLessThan(scaledTimeout(2_000));
  });
});

describe('the tables of docs/unmodified.md', () => {
  const page = readFileSync(join(ROOT, 'docs/unmodified.md'), 'utf8').split('\n');
  const variablesIn = (text: string) =>
    new Set([...text.matchAll(/`([A-Z][A-Z0-9_]*|[a-z]+_[a-z_]+)`/g)].map(([, name = '']) => name));
  const cellsOf = (row: string) => row.split('|').map((cell) => cell.trim());
  const rows = page.slice(page.indexOf('| Platform | What the command gets |') + 2);
  const table = rows.slice(0, rows.indexOf('')).map((row) => cellsOf(row) as [string, string, string, string]);
  const place = {
    ...{ url: 'http://127.0.0.1:7/proxy/x', keyedUrl: 'http://127.0.0.1:7/~KEY/proxy/x' },
    ...{ key: (beginning: string) => `${beginning}KEY`, folder: '/f', socket: '/f/socket' },
  };

  test.each(TOOLS.map((tool) => [tool.platformName, tool] as const))('list each variable of %s', (_, tool) => {
    const { platform, platformName, defaults = {} } = tool;
    const row = table.filter(
      ([, name]) => [platform, platformName].includes(name) || name.startsWith(`${platformName}: `),
    );
    expect(row.map(([, name]) => name)).toHaveLength(1);
    const given = Object.keys({ ...tool.variables(place), ...defaults });
    // The row of a platform that each organisation defines itself also contains the name of its field.
    const named = [...variablesIn(row[0]?.[2] ?? '')].filter((name) => name !== 'base_url');
    expect(named.sort()).toEqual(given.sort());
  });

  test('list the variables of every command, and have no row for an unknown platform', () => {
    const { environment } = environmentFor({}, { ...run([]), socket: '/f/socket' });
    const any = table.find(([, name]) => name === 'any');
    // The socket is set by the code that starts it (bin/commands/run.ts).
    expect([...variablesIn(any?.[2] ?? '')].sort()).toEqual(
      [...Object.keys(environment), 'AGENT_BROKER_RUN_SOCKET'].sort(),
    );
    expect(table).toHaveLength(TOOLS.length + 1);
  });

  test('list the variables that the proxy sets', () => {
    const more = page.slice(page.indexOf('| Variable | What the command gets |') + 2);
    const named = more.slice(0, more.indexOf('')).flatMap((row) => [...variablesIn(cellsOf(row)[1] ?? '')]);
    const { environment } = proxyVariables(
      {},
      {
        ...{ url: 'http://127.0.0.1:7', placeholder: 'KEY', folder: '/f', certificate: 'OURS\n' },
        ...{ systemRoots: 'A\n', wgetSettings: '', read: () => '' },
      },
    );
    expect(named.sort()).toEqual(Object.keys(environment).sort());
  });
});

describe('the addresses of platforms', () => {
  const at = (name: string, baseUrl: string, platform = name, isDefault = true): Granted => ({
    ...granted(name, platform, platform, isDefault),
    baseUrl,
  });
  const namesOf = (list: readonly Granted[], isNamed = false) =>
    platformAddresses(list, { chosen: choose(list), isNamed }).map(({ connection }) => connection);

  test('are parsed to host, port and path', () => {
    const list = ['https://api.example/v1/', 'http://[::1]:8080', 'https://api.example:444'].map((url) => at(url, url));
    const addresses = platformAddresses(list, { chosen: [], isNamed: true });
    expect(addresses.map(({ connection: _, ...rest }) => rest)).toEqual([
      { isTls: true, host: 'api.example', port: 443, path: '/v1' },
      { isTls: false, host: '::1', port: 8080, path: '' },
      { isTls: true, host: 'api.example', port: 444, path: '' },
    ]);
    expect(addresses.map(originOf)).toEqual(['https://api.example', 'http://[::1]:8080', 'https://api.example:444']);
    expect(platformAddresses([granted('old', 'old')], { chosen: [], isNamed: false })).toEqual([]);
  });

  test('are ordered like the connections of tools, then default first, then by name; or as named on the command line', () => {
    const url = 'https://api.openai.com/v1';
    const list = [at('c', url, 'ours', false), at('b', url, 'ours'), at('a', url, 'a'), at('z', url, 'openai')];
    expect(namesOf(list)).toEqual(['z', 'a', 'b', 'c']);
    expect(namesOf([at('y', url), at('x', url)], true)).toEqual(['y', 'x']);
  });

  test('a target belongs to the platform with the longest matching path', () => {
    const of = (path: string): PlatformAddress => ({ connection: path, isTls: true, host: 'h', port: 443, path });
    const addresses = [of(''), of('/calendar'), of('/calendar/v3')];
    const found = (target: string) => addressOf(target, addresses)?.path;
    expect(['/calendar/v3', '/calendar/v3?a', '/calendar/v30', '/calendars', '/x'].map(found)).toEqual([
      ...['/calendar/v3', '/calendar/v3', '/calendar', '', ''],
    ]);
    expect(addressOf('/drive', addresses.slice(1))).toBeUndefined();
  });
});

describe('the files of the proxy', () => {
  const filesFor = (parent: Record<string, string>, wgetSettings = '') =>
    proxyVariables(parent, {
      ...{ url: 'http://127.0.0.1:7', placeholder: 'KEY', folder: '/f', certificate: 'OURS\n' },
      ...{ systemRoots: 'A\nB', wgetSettings, read: (path) => `in ${path}` },
    });

  test("contain the system's roots, or those that a variable of the parent named, and the run's authority", () => {
    const own = { CURL_CA_BUNDLE: '/own', NODE_EXTRA_CA_CERTS: '/node', npm_config_cafile: '/npm' };
    const { environment, files } = filesFor(own);
    expect(environment).toMatchObject({
      HTTPS_PROXY: 'http://run:KEY@127.0.0.1:7',
      http_proxy: 'http://run:KEY@127.0.0.1:7',
      SSL_CERT_FILE: '/f/roots.pem',
      HTTPLIB2_CA_CERTS: '/f/roots.pem',
      PERL_LWP_SSL_CA_FILE: '/f/roots.pem',
      CURL_CA_BUNDLE: '/f/CURL_CA_BUNDLE.pem',
      NODE_EXTRA_CA_CERTS: '/f/NODE_EXTRA_CA_CERTS.pem',
      npm_config_cafile: '/f/npm_config_cafile.pem',
      DENO_CERT: '/f/authority.pem',
    });
    expect(environment).not.toHaveProperty('BUNDLE_SSL_CA_CERT');
    expect(files).toMatchObject({
      'roots.pem': 'A\nB\nOURS\n',
      'CURL_CA_BUNDLE.pem': 'in /own\nOURS\n',
      'NODE_EXTRA_CA_CERTS.pem': 'in /node\nOURS\n',
      'npm_config_cafile.pem': 'in /npm\nOURS\n',
      'authority.pem': 'OURS\n',
    });
  });

  test('contain settings for PHP and wget in addition to existing ones', () => {
    const { environment, files } = filesFor({ SSL_CERT_FILE: '/own' });
    expect(environment).toMatchObject({ PHP_INI_SCAN_DIR: ':/f/php', WGETRC: '/f/wgetrc' });
    expect(files).toMatchObject({
      'php/agent-broker-run.ini': 'curl.cainfo="/f/SSL_CERT_FILE.pem"\nopenssl.cafile="/f/SSL_CERT_FILE.pem"\n',
      wgetrc: 'ca_certificate = /f/roots.pem\n',
    });
    expect(filesFor({ PHP_INI_SCAN_DIR: '/a:/b' }).environment.PHP_INI_SCAN_DIR).toBe('/a:/b:/f/php');
    const settings =
      'timeout = 3\n# cacertificate = /no\nca-certificate=/first\n CACertificate = /a b.pem \nquiet = on';
    expect(filesFor({}, settings).files).toMatchObject({
      wgetrc: `${settings}\nca_certificate = /f/WGETRC.pem\n`,
      'WGETRC.pem': 'in /a b.pem\nOURS\n',
    });
  });
});
