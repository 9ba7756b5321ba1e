/** CX: plants a credential, lets the platform echo it in many forms, and then searches everything that can be read. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Answer, jsonPost, send, type TestAgent } from '../world/agent.ts';
import { type BrokerProcess, spawnBroker } from '../world/broker-process.ts';
import { formsOf, leaksOf } from '../world/canary.ts';
import { thorough } from '../world/runner/thorough.ts';
import { everythingStored } from '../world/store-contents.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { shared, startWorld } from '../world/world.ts';

/** Contains every character that some encoding writes differently, and is still a valid header value. */
const SECRET = 'CANARY+7f3a/0123="x\\y?z&0123456789~abcdefghij';
const READ = { endpoint: '/items', method: 'GET', scope: 'demo:read' };
const WRITE = { ...READ, method: 'PATCH', scope: 'demo:write' };
/**
 * Forms that the broker itself must never produce, but does not search for in an answer's text: whoever sends them has the secret, and
 * hides it on purpose. Base64 in base64 withholds the whole answer (test/egress/echo.test.ts).
 */
const NOT_LOOKED_FOR = /reversed|half|all|in base64/;

type Echo = (response: ServerResponse, request: IncomingMessage) => void;
const JSON_TYPE = { 'content-type': 'application/json' };
const asJson = JSON.stringify({ nested: [{ token: SECRET }] });

const ECHOES: Record<string, Echo> = {
  headers: (response, request) => response.writeHead(200, JSON_TYPE).end(JSON.stringify(request.rawHeaders)),
  target: (response, request) => response.writeHead(200, JSON_TYPE).end(JSON.stringify({ url: request.url })),
  gzip: (response) => response.writeHead(200, { ...JSON_TYPE, 'content-encoding': 'gzip' }).end(gzipSync(asJson)),
  br: (response) => response.writeHead(200, { ...JSON_TYPE, 'content-encoding': 'br' }).end(brotliCompressSync(asJson)),
  deflate: (response) =>
    response.writeHead(200, { ...JSON_TYPE, 'content-encoding': 'deflate' }).end(deflateSync(asJson)),
  twice: (response) =>
    response.writeHead(200, { ...JSON_TYPE, 'content-encoding': 'gzip, gzip' }).end(gzipSync(gzipSync(asJson))),
  name: (response) => response.writeHead(200, JSON_TYPE).end(JSON.stringify({ [SECRET]: 1 })),
  escapes: (response) => response.writeHead(200, JSON_TYPE).end(`{"a":"${formsOf(SECRET).get('all \\u escapes')}"}`),
  utf16: (response) =>
    response.writeHead(200, { 'content-type': 'text/plain; charset=utf-16le' }).end(Buffer.from(SECRET, 'utf16le')),
  'utf16-unsaid': (response) =>
    response.writeHead(200, { 'content-type': 'text/plain' }).end(Buffer.from(SECRET, 'utf16le')),
  html: (response) => response.writeHead(200, { 'content-type': 'text/html' }).end(`<p title="${SECRET}">`),
  binary: (response) =>
    response
      .writeHead(200, { 'content-type': 'image/png' })
      .end(Buffer.concat([Buffer.from([0x89, 0]), Buffer.from(SECRET)])),
  'status-400': (response) => response.writeHead(400, JSON_TYPE).end(asJson),
  'status-401': (response) => response.writeHead(401, JSON_TYPE).end(asJson),
  'status-403': (response) => response.writeHead(403).end(`invalid token ${SECRET}`),
  'status-500': (response) => response.writeHead(500).end(SECRET),
  redirect: (response) =>
    response.writeHead(302, { location: `https://x.example/${encodeURIComponent(SECRET)}?t=1` }).end(),
  'redirect-query': (response) =>
    response.writeHead(302, { location: `https://x.example/?t=${encodeURIComponent(SECRET)}` }).end(),
  'own-headers': (response) =>
    response.writeHead(200, { ...JSON_TYPE, 'x-token': SECRET, 'content-type': `text/${btoa(SECRET)}` }).end('{}'),
  garbage: (response) => response.socket!.end(`HTTP/1.1 2${SECRET}\r\n${SECRET}: ${SECRET}\r\n\r\n`),
  cut: (response) => {
    response.writeHead(200, { 'content-length': '1000' }).write(SECRET);
    setImmediate(() => response.socket!.destroy());
  },
  ...Object.fromEntries(
    [...formsOf(SECRET)]
      .filter(([name]) => !NOT_LOOKED_FOR.test(name))
      .map(([name, form], i): [string, Echo] => [
        `form-${i}-${name.replaceAll(/\W/g, '')}`,
        (response) => response.writeHead(200, { 'content-type': 'text/plain' }).end(`key=${form};`),
      ]),
  ),
};

const PLACEMENTS = {
  bearer: { auth: { type: 'bearer' }, secret: SECRET },
  basic: { auth: { type: 'basic' }, secret: `user:${SECRET}` },
  header: { auth: { type: 'header', name: 'X-Api-Key', prefix: 'Key ' }, secret: SECRET },
  query: { auth: { type: 'query', name: 'key' }, secret: SECRET },
} as const;

/**
 * What is searched for is the same wherever the credential was placed, but for Basic, whose pair is encoded as one: in an ordinary run the other
 * placements have the echoes that contain the request only.
 */
const OF_THE_REQUEST = ['headers', 'target'];
const echoesFor = (platform: string, all: readonly string[]): readonly string[] =>
  thorough || ['bearer', 'basic'].includes(platform) ? all : OF_THE_REQUEST;

/** Tool definitions that contain it: in a description, in a member that says how to call, and as a name that can be called. */
const TOOLS: Record<string, (request: IncomingMessage) => object> = {
  description: (request) => ({ name: 'echo', description: request.headers.authorization }),
  schema: (request) => ({ name: 'echo', inputSchema: { type: 'object', default: { [request.rawHeaders.join()]: 1 } } }),
  name: () => ({ name: Buffer.from(SECRET).toString('hex') }),
};
const CLEAN = { name: 'other', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } };

describe.each(ONE_STORE)(`CX a credential appears nowhere on %s${postgresNote}`, (store) => {
  let agent: TestAgent;
  /** Agent that calls tools. */
  let caller: TestAgent;
  /** Agent whose calls are all held. */
  let watched: TestAgent;
  let child: BrokerProcess;
  /** Where the MCP server puts the credential. */
  let echoing: string | undefined;
  const sent: Buffer[] = [];
  const answers: [string, string][] = [];

  const world = shared(() => startWorld(store));
  const organisation = shared(() => world.organisation());
  beforeAll(async () => {
    for (const [id, { auth, secret }] of Object.entries(PLACEMENTS))
      await organisation.platform({ id, manifest: { auth }, secret });
    for (const id of ['tools', 'later']) {
      const manifest = { kind: 'mcp', base_url: `${world.upstream.url}/${id}`, scopes: { tools: ['tool *'] } };
      await organisation.platform({ id, manifest, secret: SECRET });
    }
    await organisation.platform({ id: 'moved', secret: SECRET });
    await sql`update connections set credential = (select credential from connections where platform_id = 'bearer') where platform_id = 'moved'`.execute(
      world.db,
    );
    agent = await organisation.agent({ grants: { bearer: {}, basic: {}, header: {}, query: {}, moved: {} } });
    const policy = await organisation.policy([{ effect: 'allow' }]);
    const tools = { scopeList: ['tools'] };
    caller = await organisation.agent({ policy, grants: { tools, later: tools } });
    const held = { require_approval: 1 } as const;
    watched = await organisation.agent({ grants: { bearer: held, basic: held, header: held, query: held } });
    world.upstream.answer = (request, response, body) => {
      const echo = /^\/v1\/items\/([\w-]+)/.exec(request.url!)?.[1];
      const end = response.end.bind(response);
      response.end = ((chunk?: string | Buffer) => {
        if (chunk) sent.push(Buffer.from(chunk));
        return end(chunk as string);
      }) as ServerResponse['end'];
      if (request.method === 'POST' && /^\/(tools|later)$/.test(request.url!)) {
        const { id, method } = JSON.parse(body) as { id: string; method: string };
        const one = { inputSchema: { type: 'object' }, ...(echoing ? TOOLS[echoing]!(request) : {}) };
        const result = method === 'tools/list' ? { tools: echoing ? [CLEAN, one] : [CLEAN] } : { content: [] };
        response.writeHead(200, JSON_TYPE).end(JSON.stringify({ jsonrpc: '2.0', id, result }));
      } else if (echo && ECHOES[echo]) ECHOES[echo](response, request);
      else response.end(decodeURIComponent(/\bprobe=([^&]*)/.exec(request.url!)?.[1] ?? ''));
    };
    // From here on the broker is a separate process, whose output can be read.
    await world.running.stop();
    child = spawnBroker({ ...world.environment, LOG_LEVEL: 'trace', PORT: new URL(world.running.baseUrl).port });
    expect(await child.serve(), child.output().stderr).toBe(world.running.baseUrl);
  });

  const keep = (what: string, answer: Answer): Answer => {
    answers.push([what, `${JSON.stringify([...answer.headers])}\n${answer.text}`]);
    return answer;
  };

  test.each(Object.keys(PLACEMENTS))(
    'CX-01 to CX-08 for every form in which the platform echoes it, placed as %s',
    async (platform) => {
      for (const echo of echoesFor(platform, Object.keys(ECHOES))) {
        const answer = keep(`${platform} ${echo}`, await agent.act({ ...READ, platform, endpoint: `/items/${echo}` }));
        const expected = {
          'status-401': 409,
          binary: 502,
          'utf16-unsaid': 502,
          garbage: 502,
          cut: 502,
          deflate: answer.status,
          twice: answer.status,
        };
        expect([echo, answer.status], answer.text).toEqual([echo, expected[echo as keyof typeof expected] ?? 200]);
        expect(leaksOf(SECRET, answer.text), `${platform} ${echo} ${answer.text}`).toEqual([]);
        if (echo.startsWith('form-')) expect(answer.body.data, echo).toMatch(/^key=\[redacted\]=*;$/);
      }
    },
  );

  test('CX-01 an MCP server whose tool definitions contain it is refused, and none of the definitions is stored', async () => {
    const call = (platform: string) => ({
      platform,
      endpoint: '/tools/other',
      method: 'POST',
      scope: 'tools',
      data: {},
    });
    echoing = undefined;
    expect(keep('later', await caller.act(call('later'))).status).toBe(200);
    for (const platform of ['tools', 'later'])
      for (echoing of Object.keys(TOOLS)) {
        const refused = keep(`${platform} ${echoing}`, await caller.act(call(platform)));
        const { code, outcome } = refused.body;
        expect([refused.status, code, outcome], refused.text).toEqual([502, 'credential_echoed', 'not_sent']);
        const path = `/owner/platforms/${platform}/tools`;
        expect(keep('refresh', await organisation.ask('POST', `${path}/refresh`)).status).toBe(502);
        const names = (answer: Answer) => answer.body.tools.map(({ name }: { name: string }) => name);
        expect(names(keep('tools', await organisation.ask('GET', path)))).toEqual(
          platform === 'tools' ? [] : ['other'],
        );
      }
    echoing = undefined;
    expect(keep('tools', await caller.act(call('tools'))).status).toBe(200);
  });

  test('CX-09 a guess of a part of the credential is not redacted, so it reveals nothing', async () => {
    for (const guess of [SECRET.slice(0, 20), SECRET.slice(0, -1), SECRET.slice(1), `${SECRET.slice(0, -1)}#`]) {
      const answer = keep(
        'probe',
        await agent.act({ ...READ, platform: 'bearer', endpoint: `/items?probe=${encodeURIComponent(guess)}` }),
      );
      expect(answer.body.data).toBe(guess);
      expect(answer.body._meta).not.toHaveProperty('redacted');
      answers.pop();
    }
  });

  test.each(Object.keys(PLACEMENTS))(
    'CX-10 AP-26 a held call viewed by owner and agent, then approved: %s',
    async (platform) => {
      for (const echo of echoesFor(platform, [
        ...OF_THE_REQUEST,
        'html',
        'binary',
        'status-401',
        'status-403',
        'redirect',
        'cut',
      ])) {
        const asked = keep(
          'held',
          await watched.act({ ...WRITE, platform, endpoint: `/items/${echo}`, data: { a: 1 } }),
        );
        expect(asked.status, asked.text).toBe(202);
        const id = asked.body.approval_id;
        const look = async () => {
          for (const path of [`/v1/approvals/${id}`, '/v1/agents/me/pending-actions'])
            expect(keep(path, await watched.get(path)).status).toBe(200);
          for (const path of [`/owner/approvals/${id}`, '/owner/approvals'])
            expect(keep(path, await organisation.ask('GET', path)).status).toBe(200);
          for (const path of [`/approve/${id}`, `/approve/${id}/request`])
            expect(keep(path, await send(world.running.baseUrl + path, {})).status).toBe(200);
          const begin = jsonPost({ approval_id: id });
          keep('begin', await send(`${world.running.baseUrl}/v1/approvals/passkeys/sign/begin`, begin));
        };
        await look();
        expect(keep('approve', await organisation.approve(id)).status).toBe(200);
        const before = answers.length;
        await look();
        for (const [what, text] of answers.slice(before)) expect(leaksOf(SECRET, text), `${echo} ${what}`).toEqual([]);
        const { body } = await watched.get(`/v1/approvals/${id}`);
        expect([echo, body.status, 'result' in body || 'execution_error' in body]).toEqual([echo, 'approved', true]);
      }
    },
  );

  test('held, repeated, refused, malformed and unreadable calls, and every page that shows them', async () => {
    const call = { ...READ, platform: 'bearer' };
    const calls: [number, Record<string, unknown>, Record<string, string>?][] = [
      [202, { ...call, method: 'POST', scope: 'demo:write', data: { a: 1 } }],
      [200, { ...WRITE, platform: 'header', endpoint: '/items/headers', data: { a: 1 } }, { 'idempotency-key': 'k' }],
      [200, { ...WRITE, platform: 'header', endpoint: '/items/headers', data: { a: 1 } }, { 'idempotency-key': 'k' }],
      [403, { ...call, scope: 'demo:none' }],
      [400, { ...call, endpoint: '//x' }],
      [400, { ...call, nonsense: true }],
      [503, { ...call, platform: 'moved' }],
    ];
    for (const [status, request, headers] of calls) {
      const answer = keep('call', await agent.act(request, headers));
      expect(answer.status, answer.text).toBe(status);
      const id = answer.body._meta?.audit_id ?? answer.body.audit_id;
      keep('receipt', await agent.get(`/v1/audit/${id}/receipt`));
    }
    for (const path of ['/v1/agents/me', '/v1/agent/permissions'])
      expect(keep(path, await agent.get(path)).status).toBe(200);
    const connections = (await organisation.ask('GET', '/owner/connections')).body.connections;
    for (const { id } of connections) keep('test', await organisation.ask('POST', `/owner/connections/${id}/test`));
    const pages = 'agents audit?limit=200 governance connections platforms platforms/bearer policies guardrails';
    for (const path of [...pages.split(' '), 'audit/export', 'openapi.json'].map((page) => `/owner/${page}`))
      expect(keep(path, await organisation.ask('GET', path)).status).toBe(200);
    const open = '/health /version /v1/oauth/jwks.json /.well-known/svc-receipt-keys.json /.well-known/svc-attestation';
    const described = '/v1/openapi.json /llms.txt /agent-manifest.json /docs /.well-known/aa-agent-schema';
    for (const path of [...open.split(' '), ...described.split(' ')])
      keep(path, await send(world.running.baseUrl + path, {}));
  });

  test('answers, store, files and logs contain no form of it, while the broker runs and after it ended', async () => {
    // Proves that the test is effective: the platform really sent every form that is searched for.
    const found = new Set(sent.flatMap((bytes) => leaksOf(SECRET, bytes)));
    for (const name of formsOf(SECRET).keys()) if (!NOT_LOOKED_FOR.test(name)) expect(found).toContain(name);

    for (const [what, text] of answers) expect([what, leaksOf(SECRET, text)]).toEqual([what, []]);
    const sweep = async (when: string) => {
      const stored = await everythingStored(world.environment);
      expect(stored.size).toBeGreaterThan(2);
      for (const [place, bytes] of stored) expect([when, place, leaksOf(SECRET, bytes)]).toEqual([when, place, []]);
      return [...stored.keys()].join('\n');
    };
    const files = await sweep('running');
    expect(files).toContain(store === 'sqlite' ? 'broker.db-wal' : 'table connections');
    child.signal('SIGTERM');
    expect(await child.ended, child.output().stderr).toEqual({ code: 0, signal: null });
    await sweep('ended');
    const { stdout, stderr } = child.output();
    expect(stderr).toContain('"level":"error"');
    expect(leaksOf(SECRET, stdout + stderr)).toEqual([]);
    // Neither a token of the agent nor one of the command line.
    expect(stdout + stderr).not.toMatch(/eyJ|cli_/);
  });
});
