/** The proxy of a run, misused by other programs on the machine, pages in browsers and its own command. */
import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer as createHttpServer, type IncomingMessage, request as requestHttp } from 'node:http';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { listenOnLoopback } from '../world/listen.ts';
import type { Upstream } from '../world/servers/upstream.ts';
import { ALLOW_ALL, CANARY, shared } from '../world/world.ts';
import { profileOf, type Started, sh, startRun } from './run-world.ts';
import { connectBy, exchange, HOST, startTlsWorld, startUntouched } from './tls-world.ts';

type Running = { started: Started; proxy: URL; folder: string; pid: string; authority: string };

describe('the proxy of a run', () => {
  let untouched: Upstream & { certificate: string };
  let open: Running;
  let strict: Running;
  let broker: string;
  let profile: string;
  /** The headers of the requests that reached the broker. */
  const heard: string[][] = [];
  const given = shared(() => startTlsWorld());
  beforeAll(async () => {
    untouched = await startUntouched();
    const organisation = await given.world.organisation();
    await organisation.platform({ manifest: { base_url: `${given.origin}/v1` } });
    // A platform without TLS.
    await organisation.platform({ id: 'plain' });
    await organisation.platform({ id: 'codehost', manifest: { name: 'GitHub', base_url: `${given.origin}/code` } });
    await organisation.platform({ id: 'openai', manifest: { name: 'OpenAI', base_url: `${given.origin}/ai` } });
    const agent = await organisation.agent({
      rules: ALLOW_ALL,
      grants: { demo: {}, plain: {}, codehost: {}, openai: {} },
    });
    broker = agent.baseUrl;
    profile = profileOf(agent, await listeningTo(agent.baseUrl, (request) => heard.push(request.rawHeaders)));
    const running = async (...words: string[]): Promise<Running> => {
      const started = startRun(profile, [
        '--proxy',
        ...words,
        ...sh('echo "$HTTPS_PROXY $SSL_CERT_FILE $NODE_EXTRA_CA_CERTS $PPID."; exec sleep 600'),
      ]);
      const written = await started.written(/\n/);
      const [, proxy = '', roots = '', extra = '', pid = ''] = /^(\S+) (\S+) (\S+) (\d+)\.\n/.exec(written) ?? [];
      return { started, proxy: new URL(proxy), folder: dirname(roots), pid, authority: readFileSync(extra, 'utf8') };
    };
    [open, strict] = await Promise.all([running(), running('--strict')]);
  });
  beforeEach(() => {
    given.platform.seen.length = 0;
    untouched.seen.length = 0;
    heard.length = 0;
  });
  const credentials = ({ proxy }: Running) => `Basic ${btoa(`${proxy.username}:${proxy.password}`)}`;
  const shown = (by = open) => ({ 'proxy-authorization': credentials(by) });
  const target = () => `${HOST}:${given.port}`;

  const refused: [string, number, () => string, () => Record<string, string>][] = [
    ['no placeholder', 407, target, () => ({})],
    ['another placeholder', 407, target, () => ({ 'proxy-authorization': `Basic ${btoa(`run:${'A'.repeat(32)}`)}` })],
    [
      'a part of the placeholder',
      407,
      target,
      () => ({ 'proxy-authorization': `Basic ${btoa(`run:${open.proxy.password.slice(1)}`)}` }),
    ],
    [
      'a longer placeholder',
      407,
      target,
      () => ({ 'proxy-authorization': `Basic ${btoa(`run:ghp_${open.proxy.password}`)}` }),
    ],
    [
      'the placeholder as the user name',
      407,
      target,
      () => ({ 'proxy-authorization': `Basic ${btoa(`${open.proxy.password}:`)}` }),
    ],
    ['the placeholder in the Authorization header', 407, target, () => ({ authorization: credentials(open) })],
    [
      'the placeholder with the Bearer scheme',
      407,
      target,
      () => ({ 'proxy-authorization': `Bearer ${open.proxy.password}` }),
    ],
    ['the placeholder of another run', 407, target, () => shown(strict)],
    [
      'a request with the Origin header of a browser',
      403,
      target,
      () => ({ ...shown(), origin: 'https://evil.example' }),
    ],
    [
      'a request with the Sec-Fetch-Site header of a browser',
      403,
      target,
      () => ({ ...shown(), 'sec-fetch-site': 'cross-site' }),
    ],
    ['another Host', 403, target, () => ({ ...shown(), host: 'evil.example' })],
    ['another port of the platform', 403, () => `${HOST}:22`, shown],
    ['another port, in capital letters and with a dot', 403, () => `${HOST.toUpperCase()}.:22`, shown],
    ['no port', 400, () => HOST, shown],
    ['port 0', 400, () => `${HOST}:0`, shown],
    ['an invalid port', 400, () => `${HOST}:65536`, shown],
    ['a user in the target', 400, () => `a@${HOST}:443`, shown],
    ['a URL as the target', 400, () => `https://${HOST}:443`, shown],
    ['a host name that does not resolve', 502, () => 'nowhere.invalid:443', shown],
  ];
  test.each(refused)('%s: %i', async (_, status, targetOf, headersOf) => {
    const answer = await connectBy(open.proxy, targetOf(), { host: targetOf(), ...headersOf() });
    expect(answer, answer.text).toMatchObject({ status });
    expect(JSON.parse(answer.text)).toEqual({ error: expect.any(String), detail: expect.any(String) });
    expect(answer.text).not.toContain(open.proxy.password);
    expect([heard, given.platform.seen]).toEqual([[], []]);
  });

  test('--strict refuses every other host, and serves those of the grants', async () => {
    const address = untouched.address;
    const answer = await connectBy(strict.proxy, address, { host: address, ...shown(strict) });
    expect(answer).toMatchObject({ status: 403, reason: 'No host of a granted platform' });
    expect(JSON.parse(answer.text).detail).toContain('127.0.0.2');
    for (const host of [given.world.upstream.address, `sub.${HOST}:${given.port}`])
      expect(await connectBy(strict.proxy, host, { host, ...shown(strict) })).toMatchObject({ status: 403 });
    expect(await inside(strict, 'GET /v1/items HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n')).toMatch(
      /^HTTP\/1.1 200 /,
    );
  });

  test('a tunnel to another host passes bytes unchanged in both directions, and each direction ends separately', async () => {
    const sent = Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * 7) % 256));
    for (const ends of ['first', 'last'] as const) {
      const other = await startCounterpart(ends);
      const host = `127.0.0.1:${other.port}`;
      const head = `CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\nProxy-Authorization: ${credentials(open)}\r\n\r\n`;
      // Bytes that directly follow the head belong to the tunnel.
      const got = await exchange(Number(open.proxy.port), Buffer.concat([Buffer.from(head), sent]), ends === 'first');
      expect(got.toString('latin1')).toBe(`HTTP/1.1 200 Connection Established\r\n\r\n${other.answer}`);
      expect((await other.got).equals(sent)).toBe(true);
    }
    const tls = await tlsIn(open, untouched.address, {
      ...{ ca: untouched.certificate, servername: '', checkServerIdentity: () => undefined },
    });
    expect(tls.getPeerX509Certificate()?.fingerprint256).toBe(
      new X509Certificate(untouched.certificate).fingerprint256,
    );
    tls.destroy();
    expect(heard).toEqual([]);
  });

  test('the Unix socket requires the placeholder, too', async () => {
    const socketPath = join(open.folder, 'socket');
    expect(await connectBy({ socketPath }, target(), { host: target() })).toMatchObject({ status: 407 });
    const { status, socket } = await connectBy({ socketPath }, target(), { host: target(), ...shown() });
    expect(status).toBe(200);
    socket.destroy();
  });

  /** Returns the answer to bytes sent in an opened tunnel. */
  async function inside(by: Running, bytes: string): Promise<string> {
    const tls = await tlsIn(by, target());
    tls.write(bytes.replaceAll('HOST', target()).replaceAll('KEY', by.proxy.password));
    return await text(tls);
  }
  async function tlsIn(by: Running, host: string, options: object = {}): Promise<TLSSocket> {
    const { socket, status } = await connectBy(by.proxy, host, { host, ...shown(by) });
    expect(status).toBe(200);
    const tls = connectTls({
      socket,
      servername: HOST,
      ca: by.authority,
      ALPNProtocols: ['h2', 'http/1.1'],
      ...options,
    });
    await new Promise<void>((resolve, reject) => tls.once('secureConnect', resolve).once('error', reject));
    return tls;
  }

  const bad: [string, RegExp, string][] = [
    [
      'a request with two Content-Length headers',
      /^HTTP\/1.1 400 /,
      'POST /v1/items HTTP/1.1\r\nHost: HOST\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd',
    ],
    [
      'a request with Content-Length and Transfer-Encoding',
      /^HTTP\/1.1 400 /,
      'POST /v1/items HTTP/1.1\r\nHost: HOST\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    [
      'a request with two transfer codings',
      /^HTTP\/1.1 400 /,
      'POST /v1/items HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n',
    ],
    ['a folded header line', /^HTTP\/1.1 400 /, 'GET /v1/items HTTP/1.1\r\nHost: HOST\r\nA: b\r\n c\r\n\r\n'],
    ['a bare line feed', /^HTTP\/1.1 400 /, 'GET /v1/items HTTP/1.1\nHost: HOST\nA: b\n\n'],
    ['no Host', /^HTTP\/1.1 400 /, 'GET /v1/items HTTP/1.1\r\n\r\n'],
    ['another Host', /^HTTP\/1.1 403 /, 'GET /v1/items HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n'],
    [
      'two Hosts',
      /^HTTP\/1.1 40[03] /,
      'GET /v1/items HTTP/1.1\r\nHost: HOST\r\nHost: HOST\r\nConnection: close\r\n\r\n',
    ],
    [
      'an absolute URL',
      /^HTTP\/1.1 404 /,
      'GET https://HOST/v1/items HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n',
    ],
    [
      'a path of the broker',
      /^HTTP\/1.1 404 /,
      'GET /v1/../proxy/demo-main HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n',
    ],
    [
      'a path with the placeholder',
      /^HTTP\/1.1 404 /,
      'GET /~KEY/v1/items HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n',
    ],
    ['a tunnel in the tunnel', /^$/, 'CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n'],
    [
      'a request with Origin: null',
      /^HTTP\/1.1 403 /,
      'GET /v1/items HTTP/1.1\r\nHost: HOST\r\nOrigin: null\r\nConnection: close\r\n\r\n',
    ],
  ];
  test.each(bad)('in a tunnel, %s is refused and not sent on', async (_, answer, bytes) => {
    expect(await inside(open, bytes)).toMatch(answer);
    expect([heard, given.platform.seen]).toEqual([[], []]);
  });

  test("keys in a request are not sent on by the sidecar, and the broker only gets the sidecar's token", async () => {
    const lines = [
      ...[
        'Authorization: Bearer eyJhbGciOi.eyJhZ2VudCI6.c2lnbmF0dXJl',
        'Cookie: a=of-the-user',
        'X-Api-Key: of-the-user',
      ],
      ...['Private-Token: of-the-user', 'X-Svc-Authorization: Bearer of-the-user', 'Proxy-Authorization: Basic b2Y='],
      ...['Accept-Language: KEY', 'Idempotency-Key: kept', 'If-None-Match: "kept"'],
    ];
    const answer = await inside(
      open,
      `GET /v1/items HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n${lines.join('\r\n')}\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1.1 200 /);
    const got = heard.flat();
    expect(got.join('\n')).not.toMatch(/of-the-user|eyJhbGciOi\.|b2Y=/);
    expect(got.join('\n')).not.toContain(open.proxy.password);
    expect(got).toEqual(expect.arrayContaining(['kept', '"kept"']));
    expect(given.platform.seen[0]?.headers.authorization).toBe(`Bearer ${CANARY}`);
  });

  const KEY = '"Authorization: Bearer $OPENAI_API_KEY"';
  const leaving: [string, () => string, 'platform' | 'untouched', boolean][] = [
    [
      'in a body to a platform',
      () => `curl -sS --json "{\\"key\\": \\"$OPENAI_API_KEY\\"}" ${given.origin}/ai/items`,
      ...(['platform', true] as const),
    ],
    [
      'through the tunnel to a host without a platform',
      () => `curl -sSk -H ${KEY} https://${untouched.address}/any`,
      ...(['untouched', false] as const),
    ],
    [
      'past the proxy to a platform',
      () =>
        `curl -sSk --noproxy '*' --resolve ${HOST}:${given.port}:127.0.0.1 -H ${KEY} https://${HOST}:${given.port}/ai/items`,
      ...(['platform', false] as const),
    ],
  ];
  test.each(leaving)(
    'the key that a command sends %s is the placeholder only, which is accepted nowhere else',
    async (_, line, to, isGoverned) => {
      const ended = await startRun(profile, ['--proxy', ...sh(`echo "$OPENAI_API_KEY"; ${line()}`)]).ended;
      expect(ended, ended.stderr).toMatchObject({ code: 0, stderr: '' });
      const [key = ''] = ended.stdout.split('\n');
      expect(key).toMatch(/^sk-[A-Z2-7]{32}$/);
      const { seen } = to === 'platform' ? given.platform : untouched;
      expect(seen).toHaveLength(1);
      const [got] = seen;
      // The placeholder did arrive: a command that sends it elsewhere discloses it.
      expect(`${got?.headers.authorization} ${got?.body}`).toContain(key);
      // The platform's own credential comes from the broker only, and the agent's tokens are sent to the broker only.
      expect(got?.headers.authorization === `Bearer ${CANARY}`).toBe(isGoverned);
      const past = JSON.stringify([isGoverned ? { ...got, headers: {}, rawHeaders: [] } : got, ended.stdout]);
      expect(past).not.toContain(CANARY);
      const tokens = heard.flat().flatMap((value) => /\beyJ[\w-]+\.[\w-]+\.[\w-]+/.exec(value) ?? []);
      expect(tokens.length).toBeGreaterThan(0);
      for (const token of tokens) expect(JSON.stringify([seen, ended.stdout])).not.toContain(token);

      const bearer = { authorization: `Bearer ${key}` };
      await expectStatus(401, fetch(`${broker}/proxy/openai-main/items`, { headers: bearer }));
      await expectStatus(403, fetch(`http://${open.proxy.host}/proxy/openai-main/items`, { headers: bearer }));
      const asProxy = { host: target(), 'proxy-authorization': `Basic ${btoa(`run:${key.slice(-32)}`)}` };
      expect(await connectBy(open.proxy, target(), asProxy)).toMatchObject({ status: 407 });
      expect(seen).toHaveLength(1);
    },
  );

  test('its authority is limited to the hosts of the grants and to one day, and signs for no other name', async () => {
    const tls = await tlsIn(open, target());
    expect(tls.alpnProtocol).toBe('http/1.1');
    const { subjectAltName, validTo } = tls.getPeerX509Certificate() ?? {};
    expect(subjectAltName).toBe(`DNS:${HOST}`);
    const hours = (Date.parse(validTo ?? '') - Date.now()) / 3600_000;
    expect(hours).toBeGreaterThan(23.5);
    expect(hours).toBeLessThanOrEqual(24);
    await expect(tlsIn(open, target(), { servername: 'other.demo.test' })).rejects.toThrow(/altnames/);
    // The authority of another run.
    await expect(tlsIn(open, target(), { ca: strict.authority })).rejects.toThrow(/certificate/);
    const text = execFileSync('openssl', ['x509', '-noout', '-text'], { input: open.authority, encoding: 'utf8' });
    expect(text).toMatch(
      /Name Constraints: critical\s+Permitted:\s+DNS:api\.demo\.test\s+Excluded:\s+IP:0\.0\.0\.0\/0\.0\.0\.0/,
    );
  });

  test('its key is in no file and no environment', () => {
    const files = readdirSync(open.folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'));
    expect(files.length).toBe(6);
    const children = execFileSync('ps', ['-o', 'pid=', '--ppid', open.pid], { encoding: 'utf8' });
    const pids = [open.pid, ...children.trim().split(/\s+/)];
    expect(pids.length).toBe(2);
    const environments = pids.map((pid) => readFileSync(`/proc/${pid}/environ`, 'utf8'));
    expect([...files, ...environments].join('\n')).not.toMatch(/PRIVATE KEY/);
  });

  test('when the command ends, open connections are closed and the folder is removed', async () => {
    const host = `127.0.0.1:${(await startCounterpart('last')).port}`;
    const { socket } = await connectBy(open.proxy, host, { host, ...shown() });
    const tls = await tlsIn(open, target());
    const ends = [socket, tls].map(
      (one) =>
        new Promise((done) =>
          one
            .on('error', () => {})
            .once('close', done)
            .resume(),
        ),
    );
    open.started.child.kill('SIGTERM');
    await open.started.ended;
    await Promise.all(ends);
    expect(() => readdirSync(open.folder)).toThrow('ENOENT');
  });
});

/** Starts a server that forwards requests to a broker and passes each to `tell`; returns its URL. */
async function listeningTo(broker: string, tell: (request: IncomingMessage) => void): Promise<string> {
  const server = createHttpServer((request, response) => {
    tell(request);
    const asking = requestHttp(`${broker}${request.url}`, { method: request.method, headers: request.headers });
    asking.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
      answer.pipe(response);
    });
    request.pipe(asking);
  });
  const port = await listenOnLoopback(server);
  return `http://127.0.0.1:${port}`;
}

/** A raw TCP server. `first`: it answers and ends before it reads; `last`: after the client has ended. */
async function startCounterpart(ends: 'first' | 'last') {
  const answer = 'bytes \0 and \n more';
  let got = (_: Buffer) => {};
  const whole = new Promise<Buffer>((done) => {
    got = done;
  });
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => socket.destroy());
    if (ends === 'first') socket.end(answer);
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('end', () => {
      got(Buffer.concat(chunks));
      if (ends === 'last') socket.end(answer);
    });
  });
  const port = await listenOnLoopback(server);
  return { answer, got: whole, port };
}
