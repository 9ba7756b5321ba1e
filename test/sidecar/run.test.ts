/** `agent-broker run`: unmodified commands use platforms through the broker, and have none of the agent's credentials. */
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { wholeNumber } from '../../bin/duration.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { BIN } from '../world/checkout.ts';
import { evidenceOf, withoutCalls } from '../world/evidence.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { git } from '../world/servers/git-host.ts';
import { newFolder } from '../world/stores.ts';
import { ALLOW_ALL, CANARY, DEMO_RULES, givenWorld, shared } from '../world/world.ts';
import { type Ended, js, profileOf, run, sh, startRun } from './run-world.ts';

describe('a command that is run', () => {
  let agent: TestAgent;
  let profile: string;
  const world = givenWorld();
  const organisation = shared(() => world.organisation());
  beforeAll(async () => {
    for (const id of ['openai', 'demo']) await organisation.platform({ id, manifest: { scopes: SCOPES } });
    agent = await organisation.agent({
      rules: ALLOW_ALL,
      grants: { openai: { scopeList: ALL }, demo: { scopeList: ALL } },
    });
    profile = profileOf(agent);
  });
  const SCOPES = { 'demo:all': ['GET /items', 'GET /items/*', 'POST /items', 'PATCH /items/*'] };
  const ALL = ['demo:all'];
  const lastSeen = () => world.upstream.seen.at(-1);

  test('curl with the variables of a platform reaches it through the broker, with an audit row', async () => {
    const ended = await run(
      profile,
      sh('curl -sS -i -H "Authorization: Bearer $OPENAI_API_KEY" "$OPENAI_BASE_URL/items/7?a=%20b"'),
    );
    expect(ended, ended.stderr).toMatchObject({ code: 0, stderr: '' });
    expect(ended.stdout).toMatch(/^HTTP\/1.1 200 /);
    expect(lastSeen()).toMatchObject({ method: 'GET', target: '/v1/items/7?a=%20b' });
    expect(lastSeen()?.headers.authorization).toBe(`Bearer ${CANARY}`);
    const auditId = /^x-svc-audit-id: (\S+)/im.exec(ended.stdout)?.[1] ?? '';
    expect((await evidenceOf(world, agent, auditId)).row).toMatchObject({ result: 'allowed', platform_id: 'openai' });
  });

  test('a program with fetch posts, and reads the answer as a stream', async () => {
    let goOn = () => {};
    world.upstream.answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: one\n\n');
      goOn = () => response.end('data: two\n\n');
    };
    const started = startRun(
      profile,
      js(`const { OPENAI_BASE_URL: url, OPENAI_API_KEY: key } = process.env;
        const response = await fetch(url + '/items', { method: 'POST', body: '{"n":1.10}',
          headers: { 'x-api-key': key, 'content-type': 'application/json' } });
        for await (const part of response.body) process.stdout.write(part);`),
    );
    await started.written(/data: one/);
    goOn();
    const ended = await started.ended;
    world.upstream.answer = undefined;
    expect(ended).toMatchObject({ code: 0, stdout: 'data: one\n\ndata: two\n\n' });
    expect(lastSeen()).toMatchObject({ method: 'POST', body: '{"n":1.10}' });
  });

  test('a run inside another run has none of the variables of the outer one, so its command acts as its own agent only', async () => {
    const inner = await organisation.agent({ rules: ALLOW_ALL, grants: { demo: { scopeList: ALL } } });
    const start = `${process.execPath} ${BIN} run --profile ${profileOf(inner)}`;
    const ended = await run(profile, sh(`echo "$AGENT_BROKER_RUN_KEY $AGENT_BROKER_RUN_URL"; ${start} -- env`), {
      NO_PROXY: 'x.example',
    });
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    const [outer = '', ...lines] = ended.stdout.trim().split('\n');
    const [key = '', url = ''] = outer.split(' ');
    const variables = lines.join('\n');
    expect(key.length).toBeGreaterThan(16);
    expect(variables).not.toContain(key);
    expect(variables).not.toContain(url);
    expect(variables).not.toMatch(/^OPENAI_/m);
    expect(variables).toMatch(/^AGENT_BROKER_RUN_URL=http:/m);
    expect(variables).toContain('NO_PROXY=x.example');
  });

  test("requests to the broker use the environment's proxy when NODE_USE_ENV_PROXY is set, and no proxy otherwise", async () => {
    const heard: (string | undefined)[] = [];
    const proxy = createServer(({ method, url, headers }, response) => {
      heard.push(url);
      const asking = request(String(url), { method, headers });
      asking.on('response', (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
        answer.pipe(response);
      });
      asking.end();
    });
    // `fetch` of Node opens a tunnel with CONNECT.
    proxy.on('connect', ({ url }, socket) => {
      const { hostname, port } = new URL(`http://${url}`);
      const upstream = connect(Number(port), hostname, () => {
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
        upstream.pipe(socket).pipe(upstream);
      });
      for (const one of [socket, upstream]) one.on('error', () => {});
    });
    const port = await listenOnLoopback(proxy);
    const HTTP_PROXY = `http://127.0.0.1:${port}`;
    const asked = sh('curl -sS -u "x:$AGENT_BROKER_RUN_KEY" "$AGENT_BROKER_RUN_URL/proxy/demo-main/items/7"');
    for (const [more, times] of [
      [{}, 0],
      [{ NODE_USE_ENV_PROXY: '1' }, 1],
    ] as const) {
      const ended = await run(profile, asked, { HTTP_PROXY, ...more });
      expect(ended, ended.stderr).toMatchObject({ code: 0, stderr: '' });
      expect(JSON.parse(ended.stdout)).toMatchObject({ method: 'GET', target: '/v1/items/7' });
      expect(heard.filter((url) => url === `${agent.baseUrl}/proxy/demo-main/items/7`)).toHaveLength(times);
    }
  });

  test('an upload is streamed, and a client that disconnects ends the call', async () => {
    const upload = await run(
      profile,
      sh(
        'head -c 3000000 /dev/zero | curl -sS -T - -X POST -H "Content-Type: application/octet-stream" -u "x:$AGENT_BROKER_RUN_KEY" "$AGENT_BROKER_RUN_URL/proxy/demo-main/items"',
      ),
    );
    expect(upload, upload.stderr).toMatchObject({ code: 0 });
    expect(lastSeen()?.body.length).toBe(3_000_000);
    const cut = new Promise<void>((done) => {
      world.upstream.answer = (_, response) => {
        response.on('close', done);
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write('data: one\n\n');
      };
    });
    // The program stops reading, and keeps running.
    const started = startRun(
      profile,
      js(`const { OPENAI_BASE_URL: url, OPENAI_API_KEY: key } = process.env;
        const leaving = new AbortController();
        const response = await fetch(url + '/items', { headers: { authorization: 'Bearer ' + key }, signal: leaving.signal });
        await response.body.getReader().read();
        leaving.abort();
        setTimeout(() => {}, 600_000);`),
    );
    await cut;
    started.child.kill('SIGTERM');
    expect(await started.ended).toMatchObject({ code: 128 + 15 });
    world.upstream.answer = undefined;
  });

  test('JSON that is posted in gzip, as npm audit does, is unzipped for the broker', async () => {
    const post = (made: string) =>
      `${made} | curl -sS -w '%{http_code}\\n' --data-binary @- -H "Authorization: Bearer $OPENAI_API_KEY" \\
        -H 'Content-Type: application/json' -H 'Content-Encoding: gzip' "$OPENAI_BASE_URL/items"`;
    const ended = await run(profile, sh(`${post(`printf '{"n":1}' | gzip`)}; ${post('echo no gzip')}`));
    expect(ended.stdout, ended.stderr).toMatch(/200\n.*not what its Content-Encoding says.*invalid_request.*400\n$/s);
    expect(lastSeen()).toMatchObject({ method: 'POST', body: '{"n":1}' });
    expect(lastSeen()?.headers['content-encoding']).toBeUndefined();
  });

  test('refusals of the broker are returned unchanged', async () => {
    const ended = await run(
      profile,
      sh('curl -sS -w "%{http_code}" -X DELETE -H "Authorization: Bearer $OPENAI_API_KEY" "$OPENAI_BASE_URL/items/1"'),
    );
    expect(ended.stdout).toMatch(/endpoint_scope_mismatch.*403$/s);
  });

  test("--wait sets how long a call waits for an approval, overrides the connection's setting, and is overridden by the call's own header", async () => {
    const { connections } = (await organisation.ask('GET', '/owner/connections')).body;
    const { id } = connections.find((one: { label: string }) => one.label === 'demo-main');
    const set = (wait_seconds: number | null) =>
      organisation.ask('POST', `/owner/connections/${id}/settings`, { wait_seconds });
    const holding = await organisation.agent({ rules: DEMO_RULES, grants: { demo: { scopeList: ALL } } });
    const start = (words: string[], n: number, header = '') =>
      startRun(profileOf(holding), [
        ...words,
        ...sh(
          `curl -sS -H "Authorization: Bearer $AGENT_BROKER_RUN_KEY" ${header} --json '{"n":${n}}' "$AGENT_BROKER_RUN_URL/proxy/demo-main/items"`,
        ),
      ]).ended;
    const toldOf = async (ended: Promise<Ended>) => JSON.parse((await ended).stdout);
    await set(120);
    expect(await toldOf(start(['--wait', '0'], 1))).toMatchObject({ error: 'approval_pending' });
    expect(await toldOf(start(['--wait', '120'], 2, '-H "x-svc-wait: 0"'))).toMatchObject({
      error: 'approval_pending',
    });
    await set(0);
    expect(await toldOf(start([], 3))).toMatchObject({ error: 'approval_pending' });
    const told = (await organisation.pending()).map(({ approval_id }) => approval_id);
    expect(told).toHaveLength(3);
    const waiting = start(['--wait', '120'], 4);
    await expect.poll(async () => (await organisation.pending()).length, { timeout: 10_000 }).toBe(4);
    const [held] = (await organisation.pending()).filter(({ approval_id }) => !told.includes(approval_id));
    await expectStatus(200, organisation.approve(held?.approval_id));
    expect(await toldOf(waiting)).toMatchObject({ method: 'POST', body: '{"n":4}' });
    await set(null);
  });

  test('--wait of 121 seconds is a usage error, and nothing is started', async () => {
    const ended = await run(profile, ['--wait=121', ...sh('echo started')]);
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toContain('0 to 120');
  });
  test.each(['121', '-1', '1.5', 'soon', ''])('%j is not accepted as a whole number of seconds up to 120', (wait) => {
    expect(() => wholeNumber(0, 120)(wait)).toThrow('0 to 120');
  });

  test("the command's environment contains nothing of the agent's, and none of the parent's credentials that are replaced", async () => {
    const own = agent.keys.privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
    const started = startRun(profile, sh('echo "$$ ready"; exec sleep 60'), {
      AGENT_BROKER_PROFILE: profile,
      AGENT_BROKER_PRIVATE_KEY: own,
      AGENT_BROKER_OWNER_TOKEN: 'owner-token-of-the-parent',
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'identity-of-the-parent',
      ACTIONS_ID_TOKEN_REQUEST_URL: 'https://ci.example/of-the-parent',
      OPENAI_API_KEY: 'sk-real-of-the-parent',
      OPENAI_ADMIN_KEY: 'sk-admin-of-the-parent',
      OPENAI_ORG_ID: 'org-of-the-parent',
      OPENAI_PROJECT_ID: 'proj-of-the-parent',
      STRIPE_API_KEY: 'sk_live_not_granted',
    });
    const pid = /^(\d+) ready/.exec(await started.written(/ready/))?.[1];
    // Empty for an instant while one program replaces the other.
    const environment = await vi.waitUntil(() => readFileSync(`/proc/${pid}/environ`, 'utf8'));
    started.child.kill('SIGTERM');
    await started.ended;
    const text = environment.replaceAll('\0', '\n');
    expect(text).not.toMatch(/PRIVATE KEY|eyJ|of-the-parent|AGENT_BROKER_(?!RUN_)/);
    expect(text).not.toContain(CANARY);
    expect(text).toContain('STRIPE_API_KEY=sk_live_not_granted');
    expect(text).toMatch(/^OPENAI_API_KEY=sk-[A-Z2-7]{32}$/m);
    const strict = await run(profile, ['--strict', ...sh('env')], { STRIPE_API_KEY: 'sk_live_x', PLAIN: 'y' });
    expect(strict.stdout).toContain('PLAIN=y');
    expect(strict.stdout).not.toContain('sk_live_x');
    const verbose = await run(profile, ['--verbose', ...sh('true')], { STRIPE_API_KEY: 'sk_live_x' });
    expect(verbose.stderr).toMatch(/may be credentials: STRIPE_API_KEY\./);
    expect(verbose.stderr).not.toContain('sk_live_x');
  });

  test.each([
    ['the exit code of the command', 'exit 7', 7],
    ['128 plus the number of the signal that ended the command', 'kill -KILL $$', 137],
  ])('the exit code of the run is %s', async (_, lines, code) => {
    expect(await run(profile, sh(lines))).toMatchObject({ code, signal: null, stderr: '' });
  });

  test('the folder of a run that was killed with SIGKILL is removed by the next run, and those of other runs are kept', async () => {
    const temporary = newFolder();
    const start = (line: string) => startRun(profile, sh(line), { TMPDIR: temporary });
    const waiting = 'echo "$$ $(basename "$(dirname "$AGENT_BROKER_RUN_SOCKET")")"; exec sleep 60';
    const runs = [start(waiting), start(waiting), start(waiting)];
    const printed = await Promise.all(runs.map(async ({ written }) => (await written(/\n/)).trim().split(' ')));
    for (const at of [0, 1]) {
      runs[at]!.child.kill('SIGKILL');
      process.kill(Number(printed[at]![0]));
      await runs[at]!.ended;
    }
    const [, , [, kept = '']] = printed as [string[], string[], string[]];
    const beginning = kept.slice(0, -6);
    // One of another host, one that is about to listen, and a file.
    const others = ['agent-broker-run-00000000-aaaaaa', `${beginning}aaaaaa`, `${beginning}file`] as const;
    renameSync(join(temporary, printed[1]![1]!), join(temporary, others[0]));
    mkdirSync(join(temporary, others[1]));
    writeFileSync(join(temporary, others[2]), '');
    expect(readdirSync(temporary)).toHaveLength(5);
    expect(await start('true').ended).toMatchObject({ code: 0, stderr: '' });
    expect(readdirSync(temporary).sort()).toEqual([...others, kept].sort());
    const running = runs[2]!;
    running.child.kill('SIGTERM');
    await running.ended;
  });

  test('SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on, and end neither the run nor the command', async () => {
    const signals = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;
    const started = startRun(
      profile,
      js(`let got = 0;
        for (const signal of ${JSON.stringify(signals)})
          process.on(signal, () => { console.log(signal); if (++got === ${signals.length}) process.exit(3); });
        setTimeout(() => {}, 60_000); console.log('ready');`),
    );
    await started.written(/ready/);
    for (const signal of signals) {
      started.child.kill(signal);
      await started.written(new RegExp(`${signal}\n`));
    }
    // No inspector was started either, which could read the agent's key.
    expect(await started.ended).toMatchObject({ code: 3, stdout: `ready\n${signals.join('\n')}\n`, stderr: '' });
  });

  test('a client that writes all of a large request before it reads gets the refusal', async () => {
    const denied = await organisation.agent({
      rules: [{ effect: 'allow', methods: ['GET'] }],
      grants: { demo: { scopeList: ALL } },
    });
    const ended = await run(
      profileOf(denied),
      js(`const { connect } = await import('node:net');
        const { once } = await import('node:events');
        const { hostname, port } = new URL(process.env.AGENT_BROKER_RUN_URL);
        const socket = connect(port, hostname);
        socket.pause();
        socket.write('POST /proxy/demo-main/items HTTP/1.1\\r\\nHost: ' + hostname + ':' + port + '\\r\\nContent-Type: application/octet-stream\\r\\n'
          + 'Authorization: Bearer ' + process.env.AGENT_BROKER_RUN_KEY + '\\r\\nContent-Length: 20000000\\r\\n\\r\\n');
        for (let i = 0; i < 20; i++) if (!socket.write(Buffer.alloc(1_000_000))) await once(socket, 'drain');
        let text = '';
        for await (const chunk of socket) if ((text += chunk).includes('denied')) break;
        console.log(text);
        process.exit();`),
    );
    expect(ended.stdout, ended.stderr).toMatch(/^HTTP\/1.1 403 /);
    expect(ended.stdout).toContain('denied');
  });

  test.each(['websocket', 'SPDY/3.1'])(
    'a request to upgrade the connection (%s) is refused, and is not sent to the platform',
    async (protocol) => {
      const ended = await withoutCalls(world, () =>
        run(
          profile,
          sh(
            `curl -sS -w "%{http_code}" -X POST -H "Connection: Upgrade" -H "Upgrade: ${protocol}" -H "Authorization: Bearer $OPENAI_API_KEY" "$OPENAI_BASE_URL/items"`,
          ),
        ),
      );
      expect(ended.stdout, ended.stderr).toMatch(/not passed on.*501$/s);
    },
  );

  test('git URLs of the code host lead to the broker, whatever rewrite rules the user, the system and the repository have', async () => {
    await organisation.platform({ id: 'codehost', manifest: { scopes: SCOPES } });
    const coding = await organisation.agent({ rules: ALLOW_ALL, grants: { codehost: { scopeList: ALL } } });
    const home = newFolder();
    const cwd = newFolder();
    git(cwd, 'init', '-q');
    git(cwd, 'remote', 'add', 'keyed', 'https://x-access-token:ghp_own@github.com/acme/app');
    const rules = [
      ['git@github.com:', 'insteadOf', 'https://github.com/'],
      ['git@github.com:', 'pushInsteadOf', 'https://github.com/'],
      ['https://x:ghp_own@github.com/', 'insteadOf', 'https://github.com/'],
      ['git@github.com:acme/', 'insteadOf', 'https://github.com/acme/'],
      ['git@github.com:', 'insteadOf', 'gh:'],
      ['git@github.com:/', 'pushInsteadOf', 'mirror:'],
      ['https://x:ghp_own@github.com/acme/', 'insteadOf', 'acme:'],
      ['https://', 'insteadOf', 'git://'],
      ['git@github.com:', 'insteadOf', '"https://github.com/a\\nb"'],
    ].map(([base, rule, from]) => `[url "${base}"]\n\t${rule} = ${from}\n`);
    writeFileSync(join(home, '.gitconfig'), `${rules.join('')}[user]\n\tname = Ann\n`);
    writeFileSync(join(home, 'system'), `${rules[1]}[color]\n\tui = never\n`);
    const ended = await run(
      profileOf(coding),
      sh(`git remote get-url keyed; git init -q there && cd there
        git config url.git@github.com:.pushInsteadOf https://github.com/
        git remote add origin https://github.com/acme/app
        git remote get-url origin; git remote get-url --push origin
        git ls-remote --get-url git@github.com:other/app
        git ls-remote --get-url gh:acme/app; git ls-remote --get-url acme:app; git ls-remote --get-url git://github.com/acme/app
        git ls-remote --get-url git://example.org/x; git ls-remote --get-url mirror:acme/app
        git remote add mirror mirror:acme/app; git remote get-url --push mirror; git config user.name; git config color.ui
        git config --get-urlmatch http.proxy http://github.com/acme/app; echo "$AGENT_BROKER_RUN_URL"`),
      { HOME: home, GIT_CONFIG_SYSTEM: join(home, 'system') },
      cwd,
    );
    const [keyed, fetch, push, another, gh, acme, old, elsewhere, mirror, toMirror, name, color, proxy, url] =
      ended.stdout.split('\n');
    expect([fetch, push], ended.stderr).toEqual(['http://github.com/acme/app', fetch]);
    expect([keyed, proxy]).toEqual([fetch, url]);
    expect(another).toBe(fetch!.replace('acme', 'other'));
    // Git rewrites an address only once, so rules that lead to the code host would bypass the broker.
    expect([gh, acme, old, toMirror]).toEqual([fetch, fetch, fetch, fetch]);
    expect([elsewhere, mirror]).toEqual(['https://example.org/x', 'mirror:acme/app']);
    expect([name, color]).toEqual(['Ann', 'never']);
  });

  test('options after the command are those of the command, also without --', async () => {
    const ended = await run(profile, [
      'node',
      '-p',
      'JSON.stringify(process.argv.slice(1))',
      'a',
      '--proxy',
      '--verbose',
    ]);
    expect(ended).toMatchObject({ code: 0, stdout: '["a","--proxy","--verbose"]\n', stderr: '' });
    expect(await run(profile, ['--verbose', '--', 'true'])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('leads to the connection'),
    });
  });

  test('an unknown command exits with 127', async () => {
    const ended = await run(profile, ['--', 'no-such-command-anywhere']);
    expect(ended).toMatchObject({ code: 127, stderr: 'agent-broker: no-such-command-anywhere: no such command.\n' });
  });

  test('an empty command, and a folder for temporary files that does not exist, are reported with what to do', async () => {
    expect(await run(profile, ['--', ''])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/command is empty/),
    });
    const missing = join(newFolder(), 'none');
    const ended = await run(profile, ['--', 'true'], { TMPDIR: missing });
    expect(ended).toMatchObject({
      code: 1,
      stderr: `No folder can be created in ${missing} (ENOENT). Set TMPDIR to a folder that you may write to.\n`,
    });
  });

  test('missing grants, an unreachable broker and a missing profile are reported before the command is started', async () => {
    const nothing = await organisation.agent({ rules: ALLOW_ALL, grants: {} });
    const refused: [string, readonly string[], RegExp][] = [
      [profileOf(nothing), [], /no grant on any connection.* request-access PLATFORM --profile \S/],
      [profileOf(agent, 'http://127.0.0.1:9'), [], /does not answer/],
      ['/nowhere/profile.json', [], /There is no agent profile at/],
      [profile, ['--connection', 'crm'], /no grant on a connection crm\. It has: demo-main, openai-main\./],
    ];
    for (const [file, words, why] of refused) {
      const ended = await run(file, [...words, ...sh('echo started')]);
      expect(ended).toMatchObject({ code: 1, stdout: '' });
      expect(ended.stderr).toMatch(why);
    }
  });
});
