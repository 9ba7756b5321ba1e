/** `agent-broker run --proxy`: tools that cannot be configured with a base URL use the platform's own URL. */
import { readdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { TestAgent } from '../world/agent.ts';
import { evidenceOf } from '../world/evidence.ts';
import { GIT_ENVIRONMENT, type GitHost, startGitHost } from '../world/servers/git-host.ts';
import type { Upstream } from '../world/servers/upstream.ts';
import { newFolder } from '../world/stores.ts';
import { ALLOW_ALL, CANARY, type Organisation } from '../world/world.ts';
import { js, profileOf, run, sh } from './run-world.ts';
import { onlyWith, pythonPath, startTlsWorld, startUntouched, type TlsWorld } from './tls-world.ts';

const GIT_SCOPES = { 'demo:git': ['GET /acme/app/info/refs', 'POST /acme/app/git-upload-pack'] };
const SCOPES = { 'demo:read': ['GET /items', 'GET /items/*'], 'demo:write': ['POST /items'], ...GIT_SCOPES };
const python = pythonPath() ?? 'python3';

describe('the proxy of a run', () => {
  let given: TlsWorld;
  let untouched: Upstream & { certificate: string };
  let organisation: Organisation;
  let agent: TestAgent;
  let profile: string;
  beforeAll(async () => {
    given = await startTlsWorld();
    untouched = await startUntouched();
    organisation = await given.world.organisation();
    const manifest = { base_url: `${given.origin}/v1`, scopes: SCOPES };
    await organisation.platform({ manifest });
    await organisation.platform({ id: 'code', manifest: { ...manifest, base_url: `${given.origin}/git` } });
    agent = await organisation.agent({
      rules: [{ effect: 'require_approval', scopes: ['demo:write'] }, ...ALLOW_ALL],
      grants: { demo: { scopeList: Object.keys(SCOPES) }, code: { scopeList: Object.keys(SCOPES) } },
    });
    profile = profileOf(agent);
  });
  afterEach(() => {
    // All requests came from the broker.
    const { seen } = given.platform;
    for (const { headers } of seen) expect(headers).toMatchObject({ authorization: `Bearer ${CANARY}` });
    expect(JSON.stringify(seen)).not.toMatch(/of-the-user|proxy-authorization/i);
    seen.length = 0;
    given.platform.answer = undefined;
  });
  const proxied = (words: readonly string[], env?: Record<string, string>) => run(profile, ['--proxy', ...words], env);
  const items = () => `${given.origin}/v1/items/7?a=%20b`;

  // Each tool finds its roots and its proxy in its own way.
  const tools: [tool: string, words: string[], line: string][] = [
    ['curl', ['--version'], `curl -sS -H 'Authorization: Bearer key-of-the-user' 'URL'`],
    [
      process.execPath,
      ['--version'],
      `node --input-type=module -e "const headers = { 'x-api-key': 'key-of-the-user', cookie: 'a=of-the-user' };
          process.stdout.write(await (await fetch('URL', { headers })).text());"`,
    ],
    [
      process.execPath,
      ['--version'],
      `node --input-type=module -e "import { get } from 'node:https';
          get('URL', { auth: 'user:of-the-user' }, (response) => response.pipe(process.stdout));"`,
    ],
    ['wget', ['--version'], "wget -qO- 'URL'"],
    [
      '/usr/bin/python3',
      ['-c', 'import httplib2'],
      `/usr/bin/python3 -c 'import httplib2; print(httplib2.Http().request("URL")[1].decode())'`,
    ],
    ['ruby', ['--version'], `ruby -rnet/http -ruri -e 'print Net::HTTP.get(URI("URL"))'`],
    ['php', ['-r', 'exit(extension_loaded("curl") ? 0 : 1);'], `php -r 'curl_exec(curl_init("URL"));'`],
    [
      'perl',
      ['-MLWP::Protocol::https', '-e', '1'],
      `perl -MLWP::UserAgent -e 'my $c = LWP::UserAgent->new(env_proxy => 1); print $c->get("URL")->content'`,
    ],
  ];
  const installed = tools.filter(([tool, words]) => onlyWith(tool, ...words) === test);
  const names = installed.map(([tool, , line]) => (line.includes('node:https') ? 'https of Node' : basename(tool)));
  test(`${names.join(', ')} reach the platform through the broker, with an audit row`, async () => {
    // One run for all of them, because starting a run takes longer than any of the tools.
    const lines = installed.map(([tool, , line]) => line.replace(/^node /, `${tool} `).replaceAll('URL', items()));
    const ended = await proxied(sh(`set -e\n${lines.join("\nprintf '\\n--\\n'\n")}`));
    expect(ended, ended.stderr).toMatchObject({ code: 0, stderr: '' });
    const answers = ended.stdout.split(/\n+--\n/);
    expect(answers).toHaveLength(installed.length);
    for (const [i, answer] of answers.entries())
      expect(JSON.parse(answer), names[i]).toMatchObject({ method: 'GET', target: '/v1/items/7?a=%20b' });
    expect(given.platform.seen.length).toBe(installed.length);
  });

  test('wget keeps its own settings', async () => {
    const settings = join(newFolder(), 'settings');
    writeFileSync(settings, 'user_agent = of-my-settings\n');
    const ended = await proxied(sh(`wget -qO- '${items()}'; cat "$WGETRC"`), { WGETRC: settings });
    expect(ended.stdout).toContain('user_agent = of-my-settings\nca_certificate = ');
    const missing = await proxied(sh('echo started'), { WGETRC: '/nowhere/wgetrc' });
    expect(missing).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('/nowhere/wgetrc') });
  });

  test('HTTP/2: a client that also offers HTTP/1.1 falls back to it, and one that does not gets an error', async () => {
    const curl = await proxied(sh(`curl -sS --http2 -o /dev/null -w '%{http_version} %{http_code}' '${items()}'`));
    expect(curl).toMatchObject({ code: 0, stdout: '1.1 200', stderr: '' });
    const before = given.platform.seen.length;
    const { host } = new URL(given.origin);
    const program = `
      import { connect } from 'node:http2';
      import { connect as dial } from 'node:net';
      import { connect as open } from 'node:tls';
      const { hostname, port, username, password } = new URL(process.env.HTTPS_PROXY);
      const socket = dial(port, hostname);
      socket.write('CONNECT ${host} HTTP/1.1\\r\\nHost: ${host}\\r\\nProxy-Authorization: Basic ' + btoa(username + ':' + password) + '\\r\\n\\r\\n');
      socket.once('data', () => {
        open({ socket, ALPNProtocols: ['h2'], servername: 'localhost' }).on('error', ({ code }) => console.log(code));
      });
      const session = connect(process.env.AGENT_BROKER_RUN_URL).on('error', ({ code }) => console.log(code));
      session.on('goaway', (code, _, detail) => console.log(code, String(detail)));
      session.request({ ':path': '/proxy/demo-main/items/7' }).on('error', () => {}).end();`;
    const { stdout } = await proxied(js(program));
    expect(stdout.trim().split('\n').sort()).toEqual([
      '13 HTTP/2 is not served here: use HTTP/1.1.',
      'ERR_HTTP2_SESSION_ERROR',
      'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL',
    ]);
    expect(given.platform.seen.length).toBe(before);
  });

  onlyWith(
    python,
    '-c',
    'import requests',
  )("Python's requests reaches the platform", async () => {
    const program = `import requests; r = requests.get('${items()}', auth=('u', 'of-the-user')); print(r.headers['x-svc-audit-id'])`;
    const ended = await proxied(['--', python, '-c', program]);
    expect(ended, ended.stderr).toMatchObject({ code: 0, stderr: '' });
    const { row } = await evidenceOf(given.world, agent, ended.stdout.trim());
    expect(row).toMatchObject({ result: 'allowed', platform_id: 'demo' });
  });

  onlyWith(
    python,
    '-m',
    'pip',
    '--version',
  )('pip reaches the platform, also if a variable of its own names a file of roots', async () => {
    const roots = join(newFolder(), 'roots.pem');
    writeFileSync(roots, untouched.certificate);
    const file = `${given.origin}/v1/items/left-1.0.zip`;
    for (const [times, variables] of [{}, { PIP_CERT: roots }].entries()) {
      const ended = await proxied(['--', python, '-m', 'pip', 'download', '--no-deps', '--retries=0', file], variables);
      const targets = given.platform.seen.map(({ target }) => target);
      expect(targets, ended.stderr).toEqual(Array(times + 1).fill('/v1/items/left-1.0.zip'));
    }
  });

  describe('git', () => {
    let host: GitHost;
    beforeAll(async () => {
      host = await startGitHost({ takes: () => true });
      host.repository('acme/app');
    });
    /** Passes a request to the code host, like a TLS-terminating server in front of it. */
    const behind =
      (prefix: string): NonNullable<Upstream['answer']> =>
      (request, response, body) => {
        const { accept, 'content-type': type, 'git-protocol': protocol } = request.headers;
        void fetch(`${host.url}${request.url?.slice(prefix.length)}`, {
          method: request.method ?? 'GET',
          headers: Object.entries({ accept, 'content-type': type, 'git-protocol': protocol }).flatMap(
            ([name, value]) => (typeof value === 'string' ? [[name, value] as [string, string]] : []),
          ),
          ...(request.method === 'POST' && { body }),
        }).then(async (answer) => {
          response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
          response.end(Buffer.from(await answer.arrayBuffer()));
        });
      };

    test('clones from a platform, with a certificate whose constraints GnuTLS accepts', async () => {
      given.platform.answer = behind('/git');
      const ended = await proxied(
        sh(`git clone -q ${given.origin}/git/acme/app && cat app/README.md`),
        GIT_ENVIRONMENT,
      );
      expect(ended, ended.stderr).toMatchObject({ code: 0, stdout: '# acme/app\n' });
      expect(given.platform.seen.length).toBe(2);
    });

    test('clones from another host without the broker, with the roots that a variable of the parent named', async () => {
      untouched.answer = behind('');
      const roots = join(newFolder(), 'roots.pem');
      writeFileSync(roots, untouched.certificate);
      const clone = sh(`git clone -q ${untouched.url}/acme/app && cat app/README.md`);
      const ended = await proxied(clone, { ...GIT_ENVIRONMENT, GIT_SSL_CAINFO: roots });
      expect(ended, ended.stderr).toMatchObject({ code: 0, stdout: '# acme/app\n' });
      const words = ['--connection', 'demo-main', '--strict', '--verbose', ...clone];
      const strict = await proxied(words, { ...GIT_ENVIRONMENT, GIT_SSL_CAINFO: roots });
      expect(strict.code).toBe(128);
      expect(strict.stderr).toMatch(
        /^agent-broker: 127\.0\.0\.2 is the host of no granted platform: refused\.\nfatal: .* 403/,
      );
      untouched.answer = undefined;
    });
  });

  test('a held call that was approved is made once', async () => {
    const post = `curl -sS -X POST -H 'X-Svc-Wait: 0' --json '{"n":1}' ${given.origin}/v1/items`;
    const held = await proxied(sh(post));
    const { error, approval_id: id } = JSON.parse(held.stdout);
    expect(error).toBe('approval_pending');
    await organisation.approve(id);
    const made = await proxied(sh(post));
    expect(JSON.parse(made.stdout)).toMatchObject({ method: 'POST', body: '{"n":1}' });
    expect(given.platform.seen.length).toBe(1);
  });

  test("a URL in an answer is rewritten to the platform's own", async () => {
    given.platform.answer = (_, response) => {
      response.writeHead(302, { location: `${given.origin}/v1/items/8`, 'set-cookie': 'a=b' });
      response.end();
    };
    const ended = await proxied(sh(`curl -sS -o /dev/null -w '%{redirect_url}' ${given.origin}/v1/items`));
    expect(ended.stdout).toBe(`${given.origin}/v1/items/8`);
  });

  test('an operation at another address of the platform is called at that address', async () => {
    const manifest = {
      base_url: `${given.origin}/v9`,
      base_urls: { 'POST /uploads/*': `${given.origin}/files` },
      scopes: { 'demo:write': ['POST /uploads/*'] },
    };
    await organisation.platform({ id: 'uploads', manifest });
    const uploading = await organisation.agent({
      rules: ALLOW_ALL,
      grants: { uploads: { scopeList: ['demo:write'] } },
    });
    const upload = `curl -sS --fail -H 'Content-Type: text/plain' -d bytes ${given.origin}/files/uploads/1`;
    const ended = await run(profileOf(uploading), ['--proxy', ...sh(upload)]);
    expect(ended.code, ended.stderr).toBe(0);
    expect(given.platform.seen).toMatchObject([{ method: 'POST', target: '/files/uploads/1', body: 'bytes' }]);
  });

  test("a path outside of the platform's base path is refused, with the granted paths in the error", async () => {
    const paths = ['/v2/items', '/v1x/items', '/', '/v1/%2e%2e/v2/items'];
    const ended = await proxied(
      sh(`for path in ${paths.join(' ')}; do curl -sS --path-as-is -w '%{http_code}\\n' "${given.origin}$path"; done`),
    );
    const detail = `This path is not part of a granted connection at this host. Available: ${given.origin}/git (code-main), ${given.origin}/v1 (demo-main).`;
    const refusal = `${JSON.stringify({ title: 'Not Found', status: 404, detail, error: 'not_found' })}\n404\n`;
    expect(ended.stdout).toBe(refusal.repeat(paths.length));
    expect(given.platform.seen).toEqual([]);
  });

  test('of two connections with the same URL, the first by name is used, or the one named by --connection', async () => {
    await organisation.platform({ id: 'another', manifest: { base_url: `${given.origin}/v1`, scopes: SCOPES } });
    const both = await organisation.agent({
      rules: ALLOW_ALL,
      grants: { demo: { scopeList: ['demo:read'] }, another: { scopeList: ['demo:read'] } },
    });
    const ask = sh(`curl -sS -o /dev/null -D - ${given.origin}/v1/items`);
    const platformOf = async (words: string[]) => {
      const ended = await run(profileOf(both), ['--proxy', ...words, ...ask]);
      const id = /^x-svc-audit-id: (\S+)/im.exec(ended.stdout)?.[1] ?? '';
      return [(await evidenceOf(given.world, both, id)).row.platform_id, ended.stderr];
    };
    expect(await platformOf([])).toEqual([
      'another',
      `agent-broker: ${given.origin}/v1 leads to another-main, and not to demo-main. Choose with --connection.\n`,
    ]);
    expect(await platformOf(['--connection', 'demo-main'])).toEqual(['demo', '']);
  });

  test('its files are public certificates in a folder of its user, which is removed at the end', async () => {
    const temporary = newFolder();
    const ended = await proxied(
      sh(`f=$(dirname "$SSL_CERT_FILE"); stat -c %a "$f" "$f"/*.pem; (cd "$f" && ls *.pem); grep -h -- ----- "$f"/*.pem | sort -u
        grep -c BEGIN "$SSL_CERT_FILE" "$NODE_EXTRA_CA_CERTS" | sed 's/.*://'; env | grep -i proxy=`),
      { TMPDIR: temporary, NO_PROXY: '*' },
    );
    const lines = ended.stdout.split('\n');
    expect(lines.slice(0, 7)).toEqual([
      '700',
      '600',
      '600',
      'authority.pem',
      'roots.pem',
      '-----BEGIN CERTIFICATE-----',
      '-----END CERTIFICATE-----',
    ]);
    expect(Number(lines[7])).toBeGreaterThan(1);
    expect(lines[8]).toBe('1');
    const proxy = /^http:\/\/run:[A-Z2-7]{32}@127\.0\.0\.1:\d+$/;
    const variables = Object.fromEntries(lines.slice(9, -1).map((line) => line.split(/=(.*)/s).slice(0, 2)));
    expect(variables).toEqual({
      HTTPS_PROXY: expect.stringMatching(proxy),
      https_proxy: expect.stringMatching(proxy),
      HTTP_PROXY: expect.stringMatching(proxy),
      http_proxy: expect.stringMatching(proxy),
      NODE_USE_ENV_PROXY: '1',
      NO_PROXY: 'localhost,127.0.0.1,::1',
      no_proxy: 'localhost,127.0.0.1,::1',
    });
    expect(readdirSync(temporary)).toEqual([]);
  });

  test('without --proxy no variables are set, and conflicting settings are reported', async () => {
    const none = await run(profile, sh('env | grep -vi "no_proxy=" | grep -i "proxy=\\|cert\\|bundle\\|cainfo"'));
    expect(none).toMatchObject({ code: 1, stdout: '' });
    for (const name of ['all_proxy', 'HTTP_PROXY']) {
      const other = await proxied(sh('echo started'), { [name]: 'http://proxy.example' });
      expect(other).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(`${name} is set`) });
    }
    const noFile = await proxied(sh('echo started'), { CURL_CA_BUNDLE: '/nowhere.pem' });
    expect(noFile).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('/nowhere.pem') });
  });
});
