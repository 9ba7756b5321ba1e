/** The sidecar of a run on loopback, attacked by other programs on the machine and by pages in browsers. */
import { request } from 'node:http';
import { connect } from 'node:net';
import { beforeAll, describe, expect, test } from 'vitest';
import { withoutCalls } from '../world/evidence.ts';
import { ALLOW_ALL, givenWorld } from '../world/world.ts';
import { profileOf, sh, startRun } from './run-world.ts';

type Answered = { status: number; type: string | undefined; text: string };

describe('the sidecar of a run', () => {
  let sidecar: URL;
  let key: string;
  const world = givenWorld();
  beforeAll(async () => {
    const organisation = await world.organisation();
    for (const id of ['demo', 'openai']) await organisation.platform({ id });
    const agent = await organisation.agent({ rules: ALLOW_ALL, grants: { demo: {}, openai: {} } });
    const started = startRun(profileOf(agent), [
      '--connection',
      'demo-main',
      ...sh('echo "$AGENT_BROKER_RUN_URL $AGENT_BROKER_RUN_KEY."; exec sleep 600'),
    ]);
    const [, url = '', shown = ''] = /^(\S+) (\S+)\.\n/.exec(await started.written(/\n/)) ?? [];
    sidecar = new URL(url);
    key = shown;
  });

  const ask = (path: string, headers: Record<string, string>) =>
    new Promise<Answered>((resolve, reject) => {
      const asking = request({ host: sidecar.hostname, port: sidecar.port, path, headers }, async (response) => {
        let text = '';
        for await (const chunk of response) text += chunk;
        resolve({ status: response.statusCode ?? 0, type: response.headers['content-type'], text });
      });
      asking.on('error', reject);
      asking.end();
    });
  const PATH = '/proxy/demo-main/items';
  const shown = () => ({ authorization: `Bearer ${key}` });

  test('listens on loopback only, with a placeholder key generated for the run', () => {
    expect(sidecar.hostname).toBe('127.0.0.1');
    expect(key).toMatch(/^[A-Z2-7]{32}$/);
  });

  test('the placeholder is accepted wherever keys are sent, and is not sent on', async () => {
    const places: Record<string, string>[] = [
      shown(),
      // A header that the broker sends on.
      { 'accept-language': key },
      { authorization: `token ghp_${key}` },
      { authorization: `lin_api_${key}` },
      { authorization: `Basic ${btoa(`x:${key}`)}` },
      { authorization: `Basic ${btoa(`sk_test_${key}:`)}` },
      { 'x-api-key': `sk-ant-api03-${key}` },
      {
        authorization: `AWS4-HMAC-SHA256 Credential=AKIA${key}/20260101/eu/s3/aws4_request, SignedHeaders=host, Signature=0`,
      },
    ];
    for (const headers of places) {
      expect(await ask(PATH, headers)).toMatchObject({ status: 200 });
      expect(JSON.stringify(world.upstream.seen.at(-1))).not.toContain(key);
    }
    expect(await ask(`/~${key}${PATH}`, {})).toMatchObject({ status: 200 });
    expect(JSON.stringify(world.upstream.seen.at(-1))).not.toContain(key);
  });

  const notServed: [string, number, string, () => Record<string, string>][] = [
    ['no placeholder', 403, PATH, () => ({})],
    ['another placeholder', 403, PATH, () => ({ authorization: `Bearer ${'A'.repeat(32)}` })],
    ['a part of the placeholder', 403, PATH, () => ({ authorization: `Bearer ${key.slice(1)}` })],
    ['the placeholder in the query', 403, `${PATH}?key=KEY`, () => ({})],
    ['another placeholder in the path', 403, `/~${'A'.repeat(32)}${PATH}`, () => ({})],
    ['a token of an agent', 403, PATH, () => ({ 'x-svc-authorization': 'Bearer eyJ.eyJ.x' })],
    ['another host', 403, PATH, () => ({ ...shown(), host: 'evil.example' })],
    ['another port', 403, PATH, () => ({ ...shown(), host: '127.0.0.1:1' })],
    ['the Host header of the Unix socket', 403, PATH, () => ({ ...shown(), host: 'api.github.com' })],
    ['a request with the Origin header of a browser', 403, PATH, () => ({ ...shown(), origin: 'null' })],
    [
      'a request with the Sec-Fetch-Site header of a browser',
      403,
      PATH,
      () => ({ ...shown(), 'sec-fetch-site': 'cross-site' }),
    ],
    ['a connection that the run does not use', 404, '/proxy/openai-main/items', shown],
    ['the API of the broker', 404, '/v1/agents/me', shown],
    ['a path with .. that leaves the connection', 404, '/proxy/demo-main/../../v1/agents/me', shown],
    ['a path with an encoded .. that leaves the connection', 404, '/proxy/demo-main/%2e%2E/%2e%2e/v1/agents/me', shown],
    ['a longer connection name', 404, '/proxy/demo-main2/items', shown],
    ['git without a code host', 404, '/git/acme/app/info/refs', shown],
    ['an absolute URL', 404, 'http://evil.example/proxy/demo-main/items', shown],
  ];
  test.each(notServed)('%s: %i', async (_, status, path, headersOf) => {
    const answer = await withoutCalls(world, () => ask(path.replace('KEY', key), headersOf()));
    expect(answer, answer.text).toMatchObject({ status });
    const { error, detail, ...more } = JSON.parse(answer.text);
    expect([error, detail]).toEqual([expect.any(String), expect.any(String)]);
    // A client without the placeholder learns nothing more.
    if (status === 403) expect(more).toEqual({});
    expect(answer.type).toBe(status === 403 ? 'application/json' : 'application/problem+json');
    // The sidecar answers by itself, without contacting the broker.
    expect(answer.text).toMatch(/Only the command of this run|Browsers are not|The Host header|No such address here/);
    expect(answer.text).not.toContain(key);
  });

  /** Sends a request by HTTP/1.0. Returns the body, and whether the connection was reset. */
  const ask10 = () =>
    new Promise<{ body: string; isReset: boolean }>((resolve) => {
      const socket = connect(Number(sidecar.port), sidecar.hostname);
      const got = { text: '', isReset: false };
      socket.on('data', (chunk) => {
        got.text += chunk;
      });
      socket.on('error', () => {
        got.isReset = true;
      });
      socket.on('close', () => resolve({ body: got.text.split('\r\n\r\n')[1] ?? '', isReset: got.isReset }));
      socket.write(`GET ${PATH} HTTP/1.0\r\nHost: ${sidecar.host}\r\nAuthorization: Bearer ${key}\r\n\r\n`);
    });

  test('an answer that breaks off is not taken for complete by a client of HTTP/1.0', async () => {
    let isWhole = true;
    world.upstream.answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: one\n\n');
      setTimeout(() => (isWhole ? response.end() : response.socket?.resetAndDestroy()), 300);
    };
    expect(await ask10()).toEqual({ body: 'data: one\n\n', isReset: false });
    isWhole = false;
    expect(await ask10()).toMatchObject({ isReset: true });
    world.upstream.answer = undefined;
  });
});
