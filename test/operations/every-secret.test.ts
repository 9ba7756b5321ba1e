/**
 * Every secret that a user can give is a unique marker; every entry point is used, also in failing cases, and all output is searched for every
 * secret in every form. test/calls/credential-leaks.test.ts covers what a platform itself does with its credential, in all encodings.
 */

import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { CompactEncrypt, importJWK } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { sessionCookieName } from '../../broker/auth/session-cookie.ts';
import { signInLink } from '../../broker/auth/sign-in-link.ts';
import { type Answer, expectStatus, jsonPost, makeKeyPair, send, TestAgent } from '../world/agent.ts';
import { type BrokerProcess, spawnBroker } from '../world/broker-process.ts';
import { Browser } from '../world/browser/browser.ts';
import { connectAtOnce, outlive } from '../world/browser/connecting.ts';
import { leakFinder, leaksOf } from '../world/canary.ts';
import { childOf, type TestChild } from '../world/child.ts';
import { runCommand } from '../world/command.ts';
import { type EventReader, readEvents } from '../world/event-stream.ts';
import { browserOf } from '../world/mcp/person.ts';
import { callMcp, OAuthClient } from '../world/oauth-client.ts';
import { start } from '../world/people.ts';
import { type Collector, startCollector } from '../world/servers/collector.ts';
import { type LyingServer, startLyingServer } from '../world/servers/lying-authorization-server.ts';
import { type Mail, startMailServer } from '../world/servers/mail-server.ts';
import { type S3Server, startS3Server } from '../world/servers/s3-server.ts';
import { everythingStored } from '../world/store-contents.ts';
import { newFolder, newMigratedDatabase, ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, DEMO_RULES, type Organisation, startWorld, type World } from '../world/world.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
/** 40 characters that occur nowhere else. */
const mark = () => randomBytes(20).toString('hex');
/** The same with characters that are escaped in JSON, URLs, forms and HTML. */
const spelt = () => `${mark()}/+=&<">~'${mark()}`;

const ANN = { source: 'slack', id: 'U0123456789' };
const callOf = (platform: string) => ({ platform, endpoint: '/items/1', method: 'GET', scope: 'demo:read' });

/** Returns the first long word of a text that is not a uuid, which is the token in it. */
const tokenIn = (text: string): string =>
  (text.match(/[A-Za-z0-9_-]{32,}/g) ?? []).filter((word) => !/^[0-9a-f-]{36}$/.test(word))[0] ?? '';

/** By name: secrets that must not leak. */
const SECRETS: Record<string, string> = {
  'platform token': spelt(),
  'password of Basic': spelt(),
  'key in a header': spelt(),
  'key in the query': spelt(),
  'AWS secret key': spelt(),
  'OAuth client secret': spelt(),
  'secret of a client': spelt(),
  'HMAC key': spelt(),
  'secret that an agent gave': spelt(),
  'body of a held call': spelt(),
  'body of a call': spelt(),
  'OTLP sink header': spelt(),
  'S3 secret key': spelt(),
  'assertion about a person': `${Buffer.from('{"alg":"RS256"}').toString('base64url')}.${Buffer.from('{}').toString('base64url')}.${mark()}`,
  'Slack bot token': `xoxb-${mark()}`,
  'Slack signing secret': mark(),
  'Teams address': mark(),
  'Telegram bot token': `123456:${mark()}`,
  'ntfy token': `tk_${mark()}`,
  'mail password': spelt(),
  'webhook key': `whsec_${randomBytes(32).toString('base64')}`,
  'audit sink key': mark(),
  'metrics token': mark(),
  'database password': mark(),
  'password of the store of rate limits': mark(),
  'OIDC client secret': spelt(),
  'code of the identity provider': spelt(),
  'collector header': mark(),
  'master key': randomBytes(32).toString('base64'),
};
const REGION = 'eu-1';
/** Secrets that a receiver of notices or of the audit is given, by its path: they are sent there, and nowhere else. */
const RECEIVERS: Record<string, string[]> = {
  '/hook': [],
  '/sink': [],
  '/provider': ['OIDC client secret', 'code of the identity provider'],
  '/api/': ['Slack bot token'],
  '/workflow': ['Teams address'],
  '/bot': ['Telegram bot token'],
  '/ntfy': ['ntfy token'],
};
/** Returns a line from the middle of a key in PEM form. */
const lineOf = (pem: string | Buffer): string => String(pem).split('\n')[5]!;
const APP_KEY = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'pem', type: 'pkcs8' });
SECRETS['App key'] = lineOf(APP_KEY);
const ACCOUNT_KEY = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({
  format: 'pem',
  type: 'pkcs8',
});
SECRETS['key of a service account'] = lineOf(ACCOUNT_KEY);

describe.each(ONE_STORE)(`every secret on %s${postgresNote}`, (store) => {
  let world: World;
  let organisation: Organisation;
  let agent: TestAgent;
  let parented: TestChild;
  let holder: TestAgent;
  let server: LyingServer;
  /** Token endpoint for OAuth clients, service accounts and people. */
  let tokens: LyingServer;
  let collector: Collector;
  let s3: S3Server;
  let mailed: Mail[];
  let mailPort: number;
  let told: EventReader;
  let mcpClient: OAuthClient;
  const auditFolder = newFolder();
  let child: BrokerProcess;
  /** All answers, except the one that contains a new secret. */
  const out: [string, string][] = [];
  const keep = (what: string, answer: Answer): Answer => {
    out.push([what, `${answer.status} ${JSON.stringify([...answer.headers])}\n${answer.text}`]);
    return answer;
  };
  const asOwner = (method: string, path: string, body?: unknown) => organisation.ask(method, path, body);

  beforeAll(async () => {
    server = await startLyingServer();
    tokens = await startLyingServer();
    collector = await startCollector();
    s3 = await startS3Server({ access_key_id: 'AKIA', secret_access_key: SECRETS['S3 secret key']! }, REGION);
    const mail = await startMailServer(SECRETS['mail password']!, {
      disabledCommands: ['STARTTLS'],
      allowInsecureAuth: true,
    });
    [mailed, mailPort] = [mail.mails, mail.port];
    const url = store === 'postgres' ? new URL(await newMigratedDatabase()) : undefined;
    // The server accepts any password from this machine.
    if (url) url.password = SECRETS['database password']!;
    world = await startWorld('sqlite', {
      AGENT_BROKER_ALLOW_PRIVATE: [
        ...[server.address, tokens.address, s3.address, new URL(collector.url).host],
        `127.0.0.1:${mailPort}`,
      ].join(),
      AUDIT_FOLDER: auditFolder,
      METRICS_TOKEN: SECRETS['metrics token']!,
      AGENT_BROKER_MASTER_KEY: SECRETS['master key']!,
      // Nothing listens at the Redis URL, so that errors about a URL with a password are logged.
      ...(url && {
        DATABASE_URL: url.href,
        RATE_LIMIT_URL: `redis://:${SECRETS['password of the store of rate limits']}@127.0.0.1:9`,
      }),
    });
    const { upstream } = world;
    world.environment.AGENT_BROKER_ALLOW_PRIVATE += `,${upstream.address}`;
    await world.restart();
    // MCP clients use the policy of this name.
    organisation = await world.organisation({ rules: ALLOW_ALL });
    await giveSecrets();
    agent = await organisation.agent({ rules: ALLOW_ALL, grants: grantsOf() });
    holder = await organisation.agent({ name: 'holder', rules: DEMO_RULES, grants: { bearer: {} } });
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
  }, 270_000);

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
  /** Platforms with keys that sign, or that request tokens. */
  const KEYED = ['store', 'signed', 'machine', 'account'];
  const NAMES = [...Object.keys(PLATFORMS), 'docs', ...KEYED];
  const grantsOf = () => Object.fromEntries([...NAMES, 'people', 'codehost'].map((name) => [name, {}]));

  async function giveSecrets(): Promise<void> {
    const { url } = world.upstream;
    const scopes = { 'demo:read': ['GET /items/*'], 'demo:write': ['POST /items/*', 'PATCH /items/*'] };
    const rest = (auth: object) => ({ kind: 'rest', base_url: `${url}/v1`, auth, scopes });
    const aws = { type: 'aws_sigv4', region: REGION, service: 's3' };
    const tokenAuth = (type: string) => ({ type, token_endpoint: `${tokens.issuer}/token`, scopes: ['items.read'] });
    const hmac = { type: 'hmac', template: '{method} {target}', headers: { 'X-Signature': '{signature}' } };
    const document = {
      platforms: {
        ...Object.fromEntries(Object.entries(PLATFORMS).map(([name, auth]) => [name, rest(auth)])),
        store: rest(aws),
        signed: rest(hmac),
        machine: rest(tokenAuth('client_credentials')),
        account: rest(tokenAuth('service_account')),
        people: {
          ...rest(tokens.auth({ client_secret: { env: 'CLIENT' } })),
          per_person: { enabled: true, asserted: ['slack'], asserted_consent: 'link' },
        },
        docs: { ...rest(server.auth({ client_secret: { env: 'CLIENT' } })), base_url: `${server.issuer}/api` },
        codehost: {
          use: 'github',
          base_url: url,
          auth: { type: 'app', app_id: '1', installation_id: '2', private_key: { env: 'APP_KEY' } },
        },
      },
      connections: {
        ...Object.fromEntries(
          [...Object.keys(PLATFORMS), ...KEYED].map((name) => [
            `${name}-main`,
            { platform: name, secret: { env: name.toUpperCase() } },
          ]),
        ),
        'docs-main': { platform: 'docs' },
        'people-main': { platform: 'people' },
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
      'env:SIGNED': JSON.stringify({ key: SECRETS['HMAC key'] }),
      'env:MACHINE': JSON.stringify({ client_id: 'machine', client_secret: SECRETS['secret of a client'] }),
      'env:ACCOUNT': JSON.stringify({
        type: 'service_account',
        project_id: 'acme',
        private_key_id: 'key-1',
        private_key: String(ACCOUNT_KEY),
        client_email: 'robot@acme.example',
        token_uri: `${tokens.issuer}/token`,
      }),
      'env:CLIENT': SECRETS['OAuth client secret'],
      'env:APP_KEY': String(APP_KEY),
    };
    const text = JSON.stringify(document);
    const applied = keep('apply', await asOwner('POST', '/owner/governance/apply', { text, values }));
    expect(applied.status, applied.text).toBe(200);
    const mailbox = {
      host: '127.0.0.1',
      security: 'none',
      user: 'broker',
      from: 'broker@acme.example',
      to: ['ann@acme.example'],
      secret: SECRETS['mail password'],
    };
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
        ...mailbox,
        port: Number(new URL(url).port),
      },
      { name: 'mailbox', kind: 'email', ...mailbox, port: mailPort },
    ];
    for (const channel of channels) {
      const made = keep(channel.name, await asOwner('POST', '/owner/channels', channel));
      expect(made.status, made.text).toBe(201);
      // The lying server's answer exercises the failing path of each channel.
      keep(`${channel.name} test`, await asOwner('POST', `/owner/channels/${made.body.id}/test`, {}));
    }
    const sinks = [
      { kind: 'webhook', url: `${url}/sink`, secret: `whsec_${btoa(SECRETS['audit sink key']!)}` },
      { kind: 'otlp', url: `${collector.url}/sink`, header: 'x-key', secret: SECRETS['OTLP sink header'] },
      {
        kind: 's3',
        url: s3.url,
        region: REGION,
        bucket: 'audit',
        secret: JSON.stringify({ access_key_id: 'AKIA', secret_access_key: SECRETS['S3 secret key'] }),
      },
      { kind: 'file', format: 'json' },
    ];
    for (const sink of sinks) {
      const body = { name: `${sink.kind}-sink`, from: 'beginning', ...sink };
      const made = keep(body.name, await asOwner('POST', '/owner/audit-sinks', body));
      expect(made.status, made.text).toBe(201);
      keep(`${body.name} test`, await asOwner('POST', `/owner/audit-sinks/${made.body.id}/test`, {}));
    }
  }

  /** Collects the secrets that the broker itself issues once, to their receiver. */
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
    mcpClient = new OAuthClient(world);
    const decision = { name: 'desktop', grants: [{ platformId: 'bearer', scopes: ['demo:read'] }] };
    const code = await mcpClient.code(browserOf(world, organisation.owner), {}, decision);
    const given = (await mcpClient.redeem(code)).body;
    SECRETS['authorization code of an MCP client'] = code;
    SECRETS['access token of an MCP client'] = given.access_token;
    SECRETS['refresh token of an MCP client'] = given.refresh_token;
    await giveForPerson();
    await giveSealed();
  }

  /** A person consents; the platform grants the consent immediately. */
  async function giveForPerson(): Promise<void> {
    const asked = await agent.act({ ...callOf('people'), caller: ANN });
    expect([asked.status, asked.body.reason], asked.text).toEqual([412, 'not_consented']);
    const browser = new Browser();
    await expectStatus(200, browser.get(await start(browser, asked.body.consent_url)));
    expect((await browser.post(`${asked.body.consent_url}/keep`, {})).status).toBe(200);
    SECRETS['access token of a person'] = tokens.given.access.at(-1)!;
    SECRETS['refresh token of a person'] = tokens.given.refresh.at(-1)!;
  }

  /** An agent delivers a secret of its own, encrypted, authorised by an owner. */
  async function giveSealed(): Promise<void> {
    const body = { agent: holder.agentId, platform: 'header', scopes: ['demo:read'] };
    const { authorization } = (await asOwner('POST', '/owner/secret-authorizations', body)).body;
    const [key] = (await send(`${world.running.baseUrl}/.well-known/svc-secret-keys.json`, {})).body.keys;
    const text = JSON.stringify({ authorization, secret: SECRETS['secret that an agent gave'] });
    const encrypted_secret = await new CompactEncrypt(Buffer.from(text))
      .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', kid: key.kid })
      .encrypt(await importJWK(key, 'ECDH-ES'));
    const sent = await send(
      `${world.running.baseUrl}/v1/bind-secret`,
      jsonPost({ agent_id: holder.agentId, platform_id: 'header', encrypted_secret }),
    );
    expect(keep('bind-secret', sent).status, sent.text).toBe(200);
    SECRETS['authorization of a secret'] = authorization;
  }

  /** Registers an agent, approves it, and collects the key that the broker made for it. */
  async function registeredKey(): Promise<string> {
    const register = (path: string, body?: object) =>
      send(`${world.running.baseUrl}/v1/register${path}`, body ? jsonPost(body) : {});
    const asked = await register('', {
      owner_id: organisation.owner.id,
      agent_name: 'newcomer',
      requested_scopes: [{ platformId: 'bearer', scopes: ['demo:read'] }],
    });
    const token = asked.body.registration_token;
    await expectStatus(200, asOwner('POST', `/v1/register/approve/${token}`));
    SECRETS['registration token'] = token;
    return (await register(`/claim-key/${token}`)).body.private_key;
  }

  test('is a unique marker, and reaches its receiver', () => {
    expect(
      Object.values(SECRETS).every((secret) => secret?.length >= 32),
      JSON.stringify(Object.keys(SECRETS)),
    ).toBe(true);
    expect(Object.keys(SECRETS).length).toBeGreaterThan(45);
  });

  /** An owner returns from the provider, which then refuses the broker, and quotes everything that it was sent. */
  async function signInAtProvider(): Promise<void> {
    const { upstream } = world;
    const issuer = `${upstream.url}/provider`;
    upstream.answer = ({ url, headers }, response, body) => {
      const metadata = {
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/jwks`,
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['RS256'],
      };
      const refusal = { error: 'invalid_client', error_description: `${headers.authorization} ${body}` };
      const isToken = url === '/provider/token';
      response.writeHead(isToken ? 400 : 200, JSON_TYPE).end(JSON.stringify(isToken ? refusal : metadata));
    };
    const browser = browserOf(world);
    const gone = await browser.get(`${agent.baseUrl}/console/oidc/start`);
    const state = new URL(gone.url).searchParams.get('state');
    const code = SECRETS['code of the identity provider']!;
    const back = await browser.get(
      `${agent.baseUrl}/console/oidc/callback?${new URLSearchParams({ code, state: state! })}`,
    );
    expect(upstream.seen.map(({ target }) => target)).toContain('/provider/token');
    expect(back.text).toContain('sent a response that cannot be used');
    out.push(['back from the provider', back.text]);
  }

  const statusOf = (id: string) => holder.get(`/v1/approvals/${id}`);

  test('is used while calls are held, owners are notified, and the calls are made or denied', async () => {
    const { upstream } = world;
    const received = () => upstream.seen.map(({ target }) => `${target} `);
    // Answers as Slack and Telegram do.
    upstream.answer = (_request, response) =>
      response
        .writeHead(200, JSON_TYPE)
        .end('{"ok":true,"ts":"1","channel":"C0123456789","result":{"message_id":1,"chat":{"id":-100123}}}');
    const session = { authorization: `Bearer ${SECRETS['session of an owner']}` };
    told = await readEvents(`${agent.baseUrl}/owner/events`, session);
    const data = { note: SECRETS['body of a held call'] };
    const held = async () => {
      const call = { ...callOf('bearer'), method: 'POST', scope: 'demo:write' };
      const answer = keep('held', await holder.act({ ...call, data: { ...data, at: crypto.randomUUID() } }));
      expect(answer.status, answer.text).toBe(202);
      return String(answer.body.approval_id);
    };
    const [made, refused] = [await held(), await held()];
    await held();
    keep('what waits', await holder.get('/v1/agents/me/pending-actions'));
    keep(
      'access request',
      await holder.post('/v1/access-request', { platform: 'basic', scope: 'demo:read', reason: 'to read items' }),
    );
    for (const receiver of Object.keys(RECEIVERS).filter((path) => path !== '/provider'))
      await expect
        .poll(received, { timeout: 20_000, message: receiver })
        .toContainEqual(expect.stringMatching(new RegExp(`^${receiver}`)));
    await expect.poll(() => mailed.length, { timeout: 20_000 }).toBeGreaterThan(3);
    keep('approved', await asOwner('POST', `/owner/approvals/${made}/approve`, {}));
    keep('denied', await asOwner('POST', `/owner/approvals/${refused}/deny`, { note: 'no' }));
    for (const id of [made, refused]) keep('decided', await statusOf(id));
    await expect.poll(received).toContainEqual('/v1/items/1 ');
    // The messages are edited after the decision.
    for (const edit of [/^\/api\/chat\.update /, /\/editMessageText $/])
      await expect.poll(received, { timeout: 20_000 }).toContainEqual(expect.stringMatching(edit));
    await told.until(({ events }) => events.length > 1);
  }, 180_000);

  test('is used at every entry point, also in failing requests', async () => {
    const { upstream } = world;
    const data = { note: SECRETS['body of a call'] };
    const ask = (path: string, body: unknown) => agent.post(path, body);
    const tool = (name: string, args: object) =>
      callMcp(agent.baseUrl, SECRETS['access token of an MCP client'], {
        method: 'tools/call',
        params: { name, arguments: args },
      });
    const question = (platform: string) => ({
      subject: { type: 'agent', id: agent.agentId },
      action: { name: 'demo:read' },
      resource: { type: 'platform', id: platform },
    });
    const root = `did:web:${new URL(agent.baseUrl).host.replace(':', '%3A')}`;
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
    // Requests that do not reach a platform are the same however it answers.
    for (const platform of NAMES) {
      keep('evaluation', await ask('/access/v1/evaluation', question(platform)));
      const trqp = { entity_id: `${root}:agents:${agent.agentId}`, authority_id: root, action: 'demo:read' };
      keep('trqp', await ask('/v1/trqp/authorization', { ...trqp, resource: platform }));
      keep('recognition', await ask('/v1/trqp/recognition', { ...trqp, resource: platform }));
    }
    keep('evaluations', await ask('/access/v1/evaluations', { evaluations: NAMES.map(question) }));
    keep('tools', await callMcp(agent.baseUrl, SECRETS['access token of an MCP client']));
    keep('permissions', await tool('list_permissions', {}));
    for (const end of ends) {
      upstream.answer = end;
      for (const platform of NAMES) {
        const call = callOf(platform);
        const answer = keep(platform, await agent.act(call));
        const id = answer.body._meta?.audit_id ?? answer.body.audit_id;
        keep('receipt', await agent.get(`/v1/audit/${id}/receipt`));
        if (platform === 'bearer') keep('child', await parented.act(call));
      }
      keep('for a person', await agent.act({ ...callOf('people'), caller: ANN }));
      const assertion = SECRETS['assertion about a person'];
      keep('assertion', await agent.act({ ...callOf('people'), caller: { assertion } }));
      keep('with a body', await agent.act({ ...callOf('bearer'), method: 'POST', scope: 'demo:write', data }));
      keep('no platform', await agent.act({ ...callOf('none'), method: 'POST', scope: 'demo:write', data }));
      keep('own secret', await holder.act(callOf('header')));
      const { platform, endpoint, scope } = callOf('bearer');
      keep('tool', await tool('read_platform', { platform, endpoint, scope }));
      keep('tool, refused', await tool('write_platform', { platform, endpoint, scope, data }));
      keep('tool, wrong', await tool('read_platform', { platform, endpoint, scope, data }));
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
    // Secrets in the wrong places.
    for (const [name, secret] of Object.entries(SECRETS)) {
      const headers = { authorization: `Bearer ${secret}` };
      const answer = await send(`${agent.baseUrl}/v1/agents/me`, { headers });
      keep(`${name} as a bearer`, answer);
      const body = JSON.stringify({ bootstrap_token: secret, public_key_pem: secret });
      keep(
        `${name} to bind`,
        await send(`${agent.baseUrl}/v1/agents/bind`, { method: 'POST', headers: JSON_TYPE, body }),
      );
      keep(`${name} as a bearer of MCP`, await callMcp(agent.baseUrl, secret));
      keep(`${name} as a refresh token`, await mcpClient.refresh(secret));
      keep(`${name} as a code`, await mcpClient.redeem(secret));
      keep(`${name} in a path`, await send(`${agent.baseUrl}/v1/register/status/${encodeURIComponent(secret)}`, {}));
      keep(
        `${name} as a session`,
        await send(`${agent.baseUrl}/owner/policies/${encodeURIComponent('none')}`, {
          headers: { cookie: `${sessionCookieName(agent.baseUrl)}=${encodeURIComponent(secret)}` },
        }),
      );
    }
    const wrong = new TestAgent({ ...agent, keys: makeKeyPair() });
    keep('another key', await wrong.get('/v1/agents/me'));
    const pages =
      'agents audit?limit=200 audit/export governance connections platforms policies guardrails channels audit-sinks invites keys log log/export approvals access-requests registrations people mcp-authorisations diagnostics secret-authorizations';
    for (const page of pages.split(' ')) {
      const answer = keep(page, await asOwner('GET', `/owner/${page}`));
      expect([page, answer.status < 500]).toEqual([page, true]);
    }
    for (const path of ['/health', '/version', '/docs', '/llms.txt', '/console', '/.well-known/svc-receipt-keys.json'])
      keep(path, await send(agent.baseUrl + path, {}));
    await signInAtProvider();
    const metrics = await send(`${agent.baseUrl}/metrics`, {
      headers: { authorization: `Bearer ${SECRETS['metrics token']}` },
    });
    expect(keep('metrics', metrics).status).toBe(200);
  }, 180_000);

  test('is not in answers, log, traces, metrics, requests to others, arguments, store, data folder or backup', async () => {
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
    const { seen } = world.upstream;
    for (const path of Object.keys(RECEIVERS)) {
      const sent = seen.filter(({ target }) => `${target} `.startsWith(path));
      expect(sent.length, path).toBeGreaterThan(0);
      add(`sent to ${path}`, JSON.stringify(sent));
    }
    add('sent to platforms', JSON.stringify(seen.filter(({ target }) => /^\/(v1|repos|a)\//.test(target))));
    add('sent to the token endpoint', JSON.stringify(tokens.asked.map(String)));
    // Also with the line breaks of quoted-printable removed.
    add('mails', mailed.map(({ text }) => `${text}\n${text.replaceAll('=\r\n', '')}`).join('\n'));
    add(
      'objects in S3',
      Buffer.concat([...s3.objects].map(([key, body]) => (key.endsWith('.gz') ? gunzipSync(body) : body))),
    );
    for (const name of readdirSync(auditFolder, { recursive: true, withFileTypes: true }).filter((one) => one.isFile()))
      add('audit folder', readFileSync(join(name.parentPath, name.name)));
    add('events', JSON.stringify([told.events, told.comments]));
    for (const [place, bytes] of await everythingStored(world.environment)) found.set(`store ${place}`, bytes);
    child.signal('SIGTERM');
    expect(await child.ended, child.output().stderr.slice(-2_000)).toEqual({ code: 0, signal: null });
    const { stdout, stderr } = child.output();
    add('output', stdout + stderr);
    add('sent to the collector', JSON.stringify([collector.bodies, collector.headers]));
    // Checks that all of these outputs exist, so that the search is meaningful.
    const bodies = collector.bodies.join('\n');
    for (const kind of ['resourceSpans', 'resourceMetrics', 'resourceLogs']) expect(bodies).toContain(kind);
    for (const place of ['mails', 'sent to /hook', 'sent to /api/', 'sent to /bot', 'sent to /workflow'])
      expect(String(found.get(place)), place).toContain('/approve/');
    for (const place of ['objects in S3', 'audit folder', 'sent to /sink'])
      expect(String(found.get(place)), place).toContain('channel_created');
    expect(told.events.length).toBeGreaterThan(1);
    expect(stderr).toContain('"level":"debug"');
    for (const name of ['platform token', 'secret that an agent gave', 'body of a held call', 'body of a call'])
      expect(leaksOf(SECRETS[name]!, JSON.stringify(seen)), name).toContain('first half');
    expect(leaksOf(SECRETS['access token of a person']!, JSON.stringify(seen))).toContain('raw');
    for (const what of ['evaluation', 'evaluations', 'trqp', 'recognition', 'tool', 'tools', 'permissions'])
      expect(
        out.filter(([kept]) => kept === what).map(([, text]) => text.slice(0, 3)),
        what,
      ).toContain('200');
    const ofPlatforms = [
      ...['platform token', 'password of Basic', 'key in a header', 'key in the query', 'secret that an agent gave'],
      ...['body of a held call', 'body of a call', 'access token of a person'],
    ];
    const theirs: Record<string, string[]> = {
      'sent to platforms': ofPlatforms,
      'sent to the token endpoint': ['OAuth client secret', 'secret of a client'],
      'sent to the collector': ['collector header', 'OTLP sink header'],
      ...Object.fromEntries(Object.entries(RECEIVERS).map(([path, secrets]) => [`sent to ${path}`, secrets])),
    };
    // Includes tokens that were issued later. A refresh token is allowed at the endpoint that issued it: on a slow machine an access token of
    // `tokens` expires during the test and is refreshed.
    for (const [which, { given }] of Object.entries({ server, tokens }))
      for (const [kind, all] of Object.entries(given))
        for (const [at, token] of all.entries()) SECRETS[`${kind} token ${at} of ${which}`] = token;
    const leaks: string[] = [];
    const leaksIn = leakFinder(SECRETS);
    for (const [where, bytes] of found)
      for (const [name, form] of leaksIn(bytes))
        if (
          !theirs[where]?.includes(name) &&
          !(where === 'sent to platforms' && /^access token \d+ of tokens$/.test(name)) &&
          !(where === 'sent to the token endpoint' && /^refresh token (of a person|\d+ of tokens)$/.test(name))
        )
          leaks.push(`${name} in ${where} (${form})`);
    expect(leaks).toEqual([]);
  }, 180_000);
});
