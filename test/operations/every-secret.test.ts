/**
 * Every secret that a user can give is marked, every door is used, also where things fail, and all that comes out is searched for every one of
 * them in every form. What a platform itself does with its credential, in all encodings, is test/calls/credential-leaks.test.ts.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { signInLink } from '../../broker/auth/sign-in-link.ts';
import { type Answer, makeKeyPair, send, TestAgent } from '../world/agent.ts';
import { type BrokerProcess, spawnBroker } from '../world/broker-process.ts';
import { leaksIn, leaksOf } from '../world/canary.ts';
import { childOf, type TestChild } from '../world/child.ts';
import { type Collector, startCollector } from '../world/collector.ts';
import { runCommand } from '../world/command.ts';
import { connectAtOnce, outlive } from '../world/connecting.ts';
import { type LyingServer, startLyingServer } from '../world/lying-authorization-server.ts';
import { everythingStored } from '../world/stored.ts';
import { newDatabase, newFolder, ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, type Organisation, startWorld, type World } from '../world/world.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
/** 40 characters that stand nowhere else. */
const mark = () => randomBytes(20).toString('hex');

/** The first long word of a text that is no id, which is the token in it. */
const tokenIn = (text: string): string =>
  (text.match(/[A-Za-z0-9_-]{32,}/g) ?? []).filter((word) => !/^[0-9a-f-]{36}$/.test(word))[0] ?? '';

/** By name: what must show nowhere. */
const SECRETS: Record<string, string> = {
  'platform token': mark(),
  'password of Basic': mark(),
  'key in a header': mark(),
  'key in the query': mark(),
  'AWS secret key': mark(),
  'OAuth client secret': mark(),
  'Slack bot token': `xoxb-${mark()}`,
  'Slack signing secret': mark(),
  'Teams address': mark(),
  'Telegram bot token': `123456:${mark()}`,
  'ntfy token': `tk_${mark()}`,
  'mail password': mark(),
  'webhook key': `whsec_${randomBytes(32).toString('base64')}`,
  'audit sink key': mark(),
  'metrics token': mark(),
  'database password': mark(),
  'password of the store of rate limits': mark(),
  'OIDC client secret': mark(),
  'collector header': mark(),
  'master key': randomBytes(32).toString('base64'),
};
/** A line in the middle of a key in PEM form. */
const lineOf = (pem: string | Buffer): string => String(pem).split('\n')[5]!;
const APP_KEY = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'pem', type: 'pkcs8' });
SECRETS['App key'] = lineOf(APP_KEY);

describe.each(ONE_STORE)(`every secret on %s${postgresNote}`, (store) => {
  let world: World;
  let organisation: Organisation;
  let agent: TestAgent;
  let parented: TestChild;
  let server: LyingServer;
  let collector: Collector;
  let child: BrokerProcess;
  /** All that anybody was answered, but the answer that a secret is given in. */
  const out: [string, string][] = [];
  const keep = (what: string, answer: Answer): Answer => {
    out.push([what, `${answer.status} ${JSON.stringify([...answer.headers])}\n${answer.text}`]);
    return answer;
  };
  const asOwner = (method: string, path: string, body?: unknown) => organisation.ask(method, path, body);

  beforeAll(async () => {
    server = await startLyingServer();
    collector = await startCollector();
    const url = store === 'postgres' ? new URL(await newDatabase()) : undefined;
    // The server trusts whoever comes from this machine, whatever the password.
    if (url) url.password = SECRETS['database password']!;
    world = await startWorld('sqlite', {
      AGENT_BROKER_ALLOW_PRIVATE: server.address,
      METRICS_TOKEN: SECRETS['metrics token']!,
      AGENT_BROKER_MASTER_KEY: SECRETS['master key']!,
      // Nobody answers there: what is said of it is said of an address with a password.
      ...(url && {
        DATABASE_URL: url.href,
        RATE_LIMIT_URL: `redis://:${SECRETS['password of the store of rate limits']}@127.0.0.1:9`,
      }),
    });
    const { upstream } = world;
    world.environment.AGENT_BROKER_ALLOW_PRIVATE += `,${upstream.address}`;
    await world.restart();
    organisation = await world.organisation();
    await giveSecrets();
    agent = await organisation.agent({ rules: ALLOW_ALL, grants: grantsOf() });
    await giveTokens();
    const port = new URL(world.running.baseUrl).port;
    await world.running.stop();
    child = spawnBroker({
      ...world.environment,
      PORT: port,
      LOG_LEVEL: 'trace',
      OIDC_ISSUER: `${upstream.url}/provider`,
      OIDC_CLIENT_ID: 'broker',
      OIDC_CLIENT_SECRET: SECRETS['OIDC client secret']!,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_EXPORTER_OTLP_HEADERS: `x-key=${SECRETS['collector header']}`,
      OTEL_TRACES_SAMPLER: 'always_on',
      OTEL_METRICS_EXPORTER: 'otlp',
    });
    expect(await child.serve(), child.output().stderr).toBe(world.running.baseUrl);
  }, 90_000);
  afterAll(() => child?.signal('SIGKILL'));

  const PLATFORMS = {
    bearer: { type: 'bearer' },
    basic: { type: 'basic' },
    header: { type: 'header', name: 'X-Api-Key' },
    query: { type: 'query', name: 'key' },
  };
  const SECRET_OF: Record<string, string> = {
    bearer: 'platform token',
    basic: 'password of Basic',
    header: 'key in a header',
    query: 'key in the query',
  };
  const NAMES = [...Object.keys(PLATFORMS), 'docs'];
  const grantsOf = () => Object.fromEntries([...NAMES, 'store', 'codehost'].map((name) => [name, {}]));

  async function giveSecrets(): Promise<void> {
    const { url } = world.upstream;
    const scopes = { 'demo:read': ['GET /items/*'], 'demo:write': ['POST /items/*', 'PATCH /items/*'] };
    const rest = (auth: object) => ({ kind: 'rest', base_url: `${url}/v1`, auth, scopes });
    const aws = { type: 'aws_sigv4', region: 'eu-1', service: 's3' };
    const document = {
      platforms: {
        ...Object.fromEntries(Object.entries(PLATFORMS).map(([name, auth]) => [name, rest(auth)])),
        store: rest(aws),
        docs: { ...rest(server.auth({ client_secret: { env: 'CLIENT' } })), base_url: `${server.issuer}/api` },
        codehost: {
          use: 'github',
          base_url: url,
          auth: { type: 'app', app_id: '1', installation_id: '2', private_key: { env: 'APP_KEY' } },
        },
      },
      connections: {
        ...Object.fromEntries(
          [...Object.keys(PLATFORMS), 'store'].map((name) => [
            `${name}-main`,
            { platform: name, secret: { env: name.toUpperCase() } },
          ]),
        ),
        'docs-main': { platform: 'docs' },
        'codehost-main': { platform: 'codehost' },
      },
    };
    const values = {
      ...Object.fromEntries(
        Object.entries(SECRET_OF).map(([name, secret]) => [
          `env:${name.toUpperCase()}`,
          name === 'basic' ? `user:${SECRETS[secret]}` : SECRETS[secret],
        ]),
      ),
      'env:STORE': JSON.stringify({ access_key_id: 'AKIA0123456789', secret_access_key: SECRETS['AWS secret key'] }),
      'env:CLIENT': SECRETS['OAuth client secret'],
      'env:APP_KEY': String(APP_KEY),
    };
    const text = JSON.stringify(document);
    const applied = keep('apply', await asOwner('POST', '/owner/governance/apply', { text, values }));
    expect(applied.status, applied.text).toBe(200);
    const channels = [
      { name: 'hook', kind: 'webhook', url: `${url}/hook`, secret: SECRETS['webhook key'] },
      { name: 'ntfy', kind: 'ntfy', server: `${url}/ntfy`, topic: 't', secret: SECRETS['ntfy token'] },
      {
        name: 'slack',
        kind: 'slack',
        channel: 'C0123456789',
        server: `${url}/slack`,
        secret: JSON.stringify({ token: SECRETS['Slack bot token'], signing_secret: SECRETS['Slack signing secret'] }),
      },
      { name: 'teams', kind: 'teams', secret: `${url}/workflow?sig=${SECRETS['Teams address']}` },
      {
        name: 'telegram',
        kind: 'telegram',
        chat: '-100123',
        server: `${url}/bots`,
        secret: SECRETS['Telegram bot token'],
      },
      {
        name: 'mail',
        kind: 'email',
        host: '127.0.0.1',
        port: Number(new URL(url).port),
        security: 'none',
        user: 'broker',
        from: 'broker@acme.example',
        to: ['ann@acme.example'],
        secret: SECRETS['mail password'],
      },
    ];
    for (const channel of channels) {
      const made = keep(channel.name, await asOwner('POST', '/owner/channels', channel));
      expect(made.status, made.text).toBe(201);
      // An answer of a server that is none: the failing path of each.
      keep(`${channel.name} test`, await asOwner('POST', `/owner/channels/${made.body.id}/test`, {}));
    }
    const sink = {
      name: 'sink',
      kind: 'webhook',
      url: `${url}/sink`,
      secret: `whsec_${btoa(SECRETS['audit sink key']!)}`,
    };
    const made = keep('sink', await asOwner('POST', '/owner/audit-sinks', sink));
    expect(made.status, made.text).toBe(201);
  }

  /** What the broker itself gives, once, to whom it is for. */
  async function giveTokens(): Promise<void> {
    const { broker } = world.running;
    const { connections } = (await asOwner('GET', '/owner/connections')).body;
    const docs = connections.find(({ label }: { label: string }) => label === 'docs-main').id;
    await connectAtOnce(world, organisation.owner, docs);
    await outlive(world, docs);
    SECRETS['access token'] = server.given.access[0]!;
    SECRETS['refresh token'] = server.given.refresh[0]!;
    SECRETS['session of an owner'] = mintOwnerSession(broker, organisation.owner).token;
    SECRETS['sign-in link'] = tokenIn(JSON.stringify(await signInLink(broker, organisation.owner)));
    const key = await asOwner('POST', `/owner/agents/${agent.agentId}/static-keys`, {
      label: 'key',
      connection: 'bearer-main',
    });
    SECRETS['static key'] = tokenIn(key.text);
    SECRETS.invite = tokenIn((await asOwner('POST', '/owner/invites', { agent_name: 'new' })).text);
    const bootstrap = await asOwner('POST', `/owner/agents/${agent.agentId}/bootstrap-token`, { rotate: true });
    SECRETS['bootstrap token'] = bootstrap.body.bootstrap_token;
    const scopes = [{ platform: 'bearer', scopes: ['demo:read'] }];
    parented = await childOf(world, organisation, agent, { grants: scopes });
    SECRETS['bearer of a child'] = parented.bearer;
    SECRETS['key of an agent'] = lineOf(agent.keys.privateKey.export({ format: 'pem', type: 'pkcs8' }));
    SECRETS['key of a registered agent'] = lineOf(await registeredKey());
  }

  /** An agent that registered, was approved, and collected the key that the broker made for it. */
  async function registeredKey(): Promise<string> {
    const register = (path: string, body?: object) =>
      send(`${world.running.baseUrl}/v1/register${path}`, {
        ...(body && { method: 'POST', headers: JSON_TYPE, body: JSON.stringify(body) }),
      });
    const asked = await register('', {
      owner_id: organisation.owner.id,
      agent_name: 'newcomer',
      requested_scopes: [{ platformId: 'bearer', scopes: ['demo:read'] }],
    });
    const token = asked.body.registration_token;
    const approved = await asOwner('POST', `/v1/register/approve/${token}`);
    expect(approved.status, approved.text).toBe(200);
    SECRETS['registration token'] = token;
    return (await register(`/claim-key/${token}`)).body.private_key;
  }

  test('is marked, and goes to whom it is for', () => {
    expect(
      Object.values(SECRETS).every((secret) => secret?.length >= 32),
      JSON.stringify(Object.keys(SECRETS)),
    ).toBe(true);
    expect(Object.keys(SECRETS).length).toBeGreaterThan(29);
  });

  test('every door, and what fails', async () => {
    const { upstream } = world;
    const ends: ((
      request: Parameters<NonNullable<typeof upstream.answer>>[0],
      response: Parameters<NonNullable<typeof upstream.answer>>[1],
    ) => void)[] = [
      (request, response) =>
        response.writeHead(200, JSON_TYPE).end(JSON.stringify({ heads: request.rawHeaders, url: request.url })),
      (request, response) => response.writeHead(401, JSON_TYPE).end(JSON.stringify(request.rawHeaders)),
      (request, response) => response.writeHead(500).end(`${request.rawHeaders} ${request.url}`),
      (request) => request.socket.destroy(),
      (request, response) => response.socket?.end(`HTTP/1.1 2${request.headers.authorization}\r\n\r\n`),
    ];
    for (const end of ends) {
      upstream.answer = end;
      for (const platform of [...NAMES, 'store']) {
        const call = { platform, endpoint: '/items/1', method: 'GET', scope: 'demo:read' };
        const answer = keep(platform, await agent.act(call));
        const id = answer.body._meta?.audit_id ?? answer.body.audit_id;
        keep('receipt', await agent.get(`/v1/audit/${id}/receipt`));
        if (platform === 'bearer') keep('child', await parented.act(call));
      }
      keep(
        'app',
        await agent.act({
          platform: 'codehost',
          endpoint: '/repos/a/b',
          method: 'GET',
          scope: 'codehost:metadata.read',
        }),
      );
      const headers = { authorization: `Bearer ${agent.token()}` };
      keep('raw', await send(`${agent.baseUrl}/proxy/bearer-main/items/1`, { headers }));
      keep(
        'raw, static key',
        await send(`${agent.baseUrl}/proxy/bearer-main/items/1`, {
          headers: { authorization: `Bearer ${SECRETS['static key']}` },
        }),
      );
      keep(
        'git',
        await send(`${agent.baseUrl}/git/a/b/info/refs?service=git-upload-pack`, {
          headers: { authorization: `Basic ${btoa(`x:${agent.token()}`)}` },
        }),
      );
    }
    server.answers.set('/token', (_request, response, body) =>
      response.writeHead(400, JSON_TYPE).end(JSON.stringify({ error: 'invalid_grant', error_description: body })),
    );
    keep('docs', await agent.act({ platform: 'docs', endpoint: '/items/1', method: 'GET', scope: 'demo:read' }));
    // Secrets where none belongs.
    for (const [name, secret] of Object.entries(SECRETS)) {
      const headers = { authorization: `Bearer ${secret}` };
      const answer = await send(`${agent.baseUrl}/v1/agents/me`, { headers });
      keep(`${name} as a bearer`, answer);
      const body = JSON.stringify({ bootstrap_token: secret, public_key_pem: secret });
      keep(
        `${name} to bind`,
        await send(`${agent.baseUrl}/v1/agents/bind`, { method: 'POST', headers: JSON_TYPE, body }),
      );
      keep(`${name} in a path`, await send(`${agent.baseUrl}/v1/register/status/${encodeURIComponent(secret)}`, {}));
      keep(
        `${name} as a session`,
        await send(`${agent.baseUrl}/owner/policies/${encodeURIComponent('none')}`, {
          headers: { cookie: `svc_owner=${encodeURIComponent(secret)}` },
        }),
      );
    }
    const wrong = new TestAgent({ ...agent, keys: makeKeyPair() });
    keep('another key', await wrong.get('/v1/agents/me'));
    const pages =
      'agents audit?limit=200 audit/export governance connections platforms policies guardrails channels audit-sinks invites keys log log/export approvals';
    for (const page of pages.split(' ')) {
      const answer = keep(page, await asOwner('GET', `/owner/${page}`));
      expect([page, answer.status < 500]).toEqual([page, true]);
    }
    for (const path of [
      '/health',
      '/version',
      '/docs',
      '/llms.txt',
      '/console',
      '/.well-known/svc-receipt-keys.json',
      '/auth/oidc/start',
    ])
      keep(path, await send(agent.baseUrl + path, {}));
    const metrics = await send(`${agent.baseUrl}/metrics`, {
      headers: { authorization: `Bearer ${SECRETS['metrics token']}` },
    });
    expect(keep('metrics', metrics).status).toBe(200);
  }, 60_000);

  test('stands nowhere: answers, log, traces, metrics, what others were sent, arguments, store, data folder, backup', async () => {
    const backup = join(newFolder(), 'backup');
    const shims = newFolder();
    const args = join(shims, 'args');
    writeFileSync(join(shims, 'pg_dump'), `#!/bin/sh\necho "$@" >> ${args}\nPATH=$\{PATH#*:} exec pg_dump "$@"\n`);
    chmodSync(join(shims, 'pg_dump'), 0o755);
    const { DATABASE_URL, AGENT_BROKER_DATA, AGENT_BROKER_MASTER_KEY } = world.environment;
    const made = await runCommand(['backup', backup], {
      cwd: shims,
      env: {
        PATH: `${shims}:${process.env.PATH}`,
        AGENT_BROKER_DATA: AGENT_BROKER_DATA!,
        AGENT_BROKER_MASTER_KEY: AGENT_BROKER_MASTER_KEY!,
        ...(DATABASE_URL !== undefined && { DATABASE_URL }),
      },
    });
    expect(made.code, made.stderr).toBe(0);
    const found = new Map<string, Buffer>();
    const add = (where: string, text: string | Buffer) => void found.set(where, Buffer.from(text));
    add('backup command', made.stdout + made.stderr);
    if (existsSync(args)) add('arguments of pg_dump', readFileSync(args));
    for (const name of readdirSync(join(backup, '..'))) add(`backup ${name}`, readFileSync(join(backup, '..', name)));
    add('arguments', readFileSync(`/proc/${child.pid}/cmdline`));
    add('answers', out.map(([what, text]) => `${what}: ${text}`).join('\n'));
    const others = world.upstream.seen.filter(({ target }) => /^\/(hook|sink|provider)/.test(target));
    add('notices', JSON.stringify(others));
    for (const [place, bytes] of await everythingStored(world.environment)) found.set(`store ${place}`, bytes);
    child.signal('SIGTERM');
    expect(await child.ended, child.output().stderr.slice(-2_000)).toEqual({ code: 0, signal: null });
    const { stdout, stderr } = child.output();
    add('output', stdout + stderr);
    add('traces and metrics', collector.bodies.join('\n'));
    // It was a test at all.
    expect(others.length).toBeGreaterThan(0);
    expect(collector.bodies.length).toBeGreaterThan(0);
    expect(stderr).toContain('"level":"debug"');
    expect(leaksOf(SECRETS['platform token']!, JSON.stringify(world.upstream.seen))).toContain('raw');
    const leaks: string[] = [];
    for (const [where, bytes] of found)
      for (const [name, form] of leaksIn(SECRETS, bytes)) leaks.push(`${name} in ${where} (${form})`);
    expect(leaks).toEqual([]);
  }, 60_000);
});
