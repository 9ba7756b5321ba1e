import { createServer as createHttp, type IncomingMessage, type Server } from 'node:http';
import { createServer as createHttps } from 'node:https';
import net, { type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { makeOutbound, type OutboundOptions } from '../../broker/egress/dispatcher.ts';
import { readOutboundProxy } from '../../broker/egress/outbound-proxy.ts';
import { readConfig } from '../../broker/environment/config.ts';
import { egressToCollector } from '../../broker/process/make-egress.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { ALLOW_ALL, READ, startWorld } from '../world/world.ts';
import { type Certificate, certificateFor } from './certificate.ts';
import { fixedUpstream, get, lookupOf, rawUpstream, tlsUpstream } from './upstream.ts';

const NAME = 'up.test';
const certificate = certificateFor(NAME);
const URL_OF_IT = new URL(`https://${NAME}/items`);
const unknown = () => lookupOf(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' })).lookup;

type Proxy = { url: string; heard: { target: string | undefined; authorization: string | undefined }[] };

/** Tunnels every connection to one port, or answers as configured. */
async function startProxy(to: number | ((socket: Duplex) => void), tls?: Certificate): Promise<Proxy> {
  const server: Server = tls ? createHttps(tls) : createHttp();
  const heard: Proxy['heard'] = [];
  const sockets = new Set<Duplex>();
  server.on('connect', (request: IncomingMessage, socket: Duplex) => {
    sockets.add(socket.on('error', () => {}));
    heard.push({ target: request.url, authorization: request.headers['proxy-authorization'] });
    if (typeof to === 'function') return to(socket);
    const upstream = net.connect(to, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.pipe(socket).pipe(upstream);
    });
    sockets.add(upstream.on('error', () => {}));
  });
  const port = await listenOnLoopback(server);
  afterFile(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { url: `${tls ? 'https' : 'http'}://user:p%40ss@127.0.0.1:${port}`, heard };
}

const outboundBy = (proxy: Proxy, options: Partial<OutboundOptions> = {}) => {
  const outbound = makeOutbound({
    allowPrivate: [],
    lookup: unknown(),
    ca: certificate.cert,
    connectTimeoutMs: 2_000,
    ...options,
    proxy: readOutboundProxy(proxy.url),
  });
  afterFile(() => outbound.close());
  return outbound;
};

describe('OUTBOUND_PROXY', () => {
  it('is parsed with its user, port and scheme', () => {
    expect(readOutboundProxy('http://u:p%40@proxy.example:3128')).toEqual({
      ...{ isTls: false, host: 'proxy.example', port: 3128, authorization: `Basic ${btoa('u:p@')}` },
    });
    expect(readOutboundProxy('http://:p@proxy.example').authorization).toBe(`Basic ${btoa(':p')}`);
    expect(readOutboundProxy('https://[::1]')).toEqual({
      ...{ isTls: true, host: '::1', port: 443, authorization: undefined },
    });
  });

  it('SS-11 connects to a platform by its name, with TLS to the platform itself', async () => {
    await using upstream = await tlsUpstream(certificate);
    const proxy = await startProxy(upstream.port);
    expect(await outboundBy(proxy).send(get(URL_OF_IT))).toMatchObject({ kind: 'answer', status: 200 });
    expect(proxy.heard).toEqual([{ target: `${NAME}:443`, authorization: `Basic ${btoa('user:p@ss')}` }]);
    const other = outboundBy(proxy, { ca: certificateFor('other.test').cert });
    expect(await other.send(get(URL_OF_IT))).toMatchObject({ code: 'tls_failed', sent: false });
  });

  it.each([undefined, '0'])(
    'is verified when its URL is https, with NODE_TLS_REJECT_UNAUTHORIZED %s',
    async (unverified) => {
      vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', unverified);
      onTestFinished(() => void vi.unstubAllEnvs());
      await using upstream = await tlsUpstream(certificate);
      const own = certificateFor('127.0.0.1');
      const proxy = await startProxy(upstream.port, own);
      // The certificates that Node trusts, not those against which platforms are verified.
      expect(await outboundBy(proxy).send(get(URL_OF_IT))).toMatchObject({ code: 'proxy_unreachable', sent: false });
      expect(proxy.heard).toEqual([]);
    },
  );

  it('is not used for origins that the operator listed', async () => {
    await using upstream = await fixedUpstream('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}');
    const proxy = await startProxy(1);
    const outbound = outboundBy(proxy, { allowPrivate: [upstream.origin] });
    expect(await outbound.send(get(upstream.url()))).toMatchObject({ status: 200 });
    expect(proxy.heard).toEqual([]);
  });

  it.each([
    ['a name that is private here', lookupOf(['10.0.0.1'], ['10.0.0.1']).lookup, URL_OF_IT, 'private'],
    ['a name with one private address', lookupOf(['93.184.215.14', '::1']).lookup, URL_OF_IT, 'loopback'],
    ['a private address', unknown(), new URL('https://169.254.169.254/'), 'linkLocal'],
    ['a forbidden port', unknown(), new URL(`https://${NAME}:22/`), 'port'],
  ])('is not asked for %s', async (_, lookup, url, cause) => {
    const proxy = await startProxy(1);
    expect(await outboundBy(proxy, { lookup }).send(get(url))).toMatchObject({ code: 'address_refused', cause });
    expect(proxy.heard).toEqual([]);
  });

  it('is used even though the local resolver does not answer', async () => {
    await using upstream = await tlsUpstream(certificate);
    const proxy = await startProxy(upstream.port);
    const outbound = outboundBy(proxy, { lookup: () => {} });
    expect(await outbound.send(get(URL_OF_IT))).toMatchObject({ status: 200 });
  });

  const answers: [string, (socket: Duplex) => void, object][] = [
    ['refuses', (socket) => socket.end('HTTP/1.1 403 Forbidden\r\n\r\n'), { code: 'proxy_refused', cause: '403' }],
    [
      'requires another password',
      (socket) => socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n'),
      { code: 'proxy_refused', cause: '407' },
    ],
    ['is not an HTTP proxy', (socket) => socket.end('SSH-2.0-x\r\n\r\n'), { code: 'proxy_refused', cause: 'not_http' }],
    [
      'answers without end',
      (socket) => socket.write(`HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(5_000)}`),
      { code: 'proxy_refused', cause: '200' },
    ],
    ['hangs up', (socket) => socket.destroy(), { code: 'proxy_unreachable' }],
    ['says nothing', () => {}, { code: 'timeout' }],
    ['connects, and ends in the handshake', (socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n'), { code: 'tls_failed' }],
  ];
  it.each(answers)('that %s fails the call with nothing sent', async (_, answer, expected) => {
    const proxy = await startProxy(answer);
    const outbound = outboundBy(proxy, { connectTimeoutMs: 500 });
    expect(await outbound.send(get(URL_OF_IT))).toMatchObject({ ...expected, sent: false });
    // Once per call.
    expect(proxy.heard).toHaveLength(1);
  });

  it('that is unavailable fails the call with nothing sent', async () => {
    const away = await rawUpstream(() => {});
    await away[Symbol.asyncDispose]();
    const outbound = outboundBy({ url: `http://${away.origin}`, heard: [] });
    expect(await outbound.send(get(URL_OF_IT))).toMatchObject({
      ...{ code: 'proxy_unreachable', cause: 'ECONNREFUSED', sent: false },
    });
  });

  it('works with a server that sends first, such as a mail server', async () => {
    const proxy = await startProxy((socket) => socket.write('HTTP/1.0 200 OK\r\nVia: 1.0 x\r\n\r\n220 ready\r\n'));
    const socket = (await outboundBy(proxy).dial({ host: 'mail.test', port: 587, ports: [587] })) as Socket;
    const [greeting] = await new Promise<[Buffer]>((done) => socket.once('data', (chunk) => done([chunk])));
    expect(String(greeting)).toBe('220 ready\r\n');
    expect(proxy.heard[0]?.target).toBe('mail.test:587');
    socket.destroy();
  });

  it('closes open tunnels when the broker stops', async () => {
    const proxy = await startProxy(() => {});
    const outbound = outboundBy(proxy, { connectTimeoutMs: 60_000 });
    const asked = outbound.send(get(URL_OF_IT));
    await expect.poll(() => proxy.heard.length).toBe(1);
    await outbound.close();
    expect(await asked).toMatchObject({ code: 'closed', sent: false });
  });
});

describe('a broker with OUTBOUND_PROXY', () => {
  it('sends calls through it, and reports failures of the proxy', async () => {
    const proxy = await startProxy((socket) => socket.end('HTTP/1.1 403 Forbidden\r\n\r\n'));
    const world = await startWorld('sqlite', { OUTBOUND_PROXY: proxy.url });
    const organisation = await world.organisation();
    await organisation.platform({ manifest: { base_url: 'https://platform.test' } });
    const agent = await organisation.agent({ rules: ALLOW_ALL, grants: { demo: {} } });
    const { status, body } = await agent.act(READ);
    expect([status, body]).toMatchObject([
      502,
      { error: 'upstream_unreachable', code: 'proxy_refused', outcome: 'not_sent' },
    ]);
    expect(proxy.heard).toMatchObject([{ target: 'platform.test:443' }]);
  });

  it('sends traces and metrics to a collector at https that way, on the port that it has', async () => {
    const proxy = await startProxy((socket) => socket.end('HTTP/1.1 403 Forbidden\r\n\r\n'));
    const config = readConfig({
      OUTBOUND_PROXY: proxy.url,
      OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector.test:4318',
    });
    const outbound = egressToCollector(config.otel!, { config, own: [] });
    afterFile(() => outbound.close());
    const { href } = config.otel!.traces!;
    expect(await outbound.send(get(new URL(href)))).toMatchObject({ code: 'proxy_refused', sent: false });
    expect(proxy.heard).toMatchObject([{ target: 'collector.test:4318' }]);
    // Nothing else there.
    expect(await outbound.send(get(new URL('https://collector.test:4317/')))).toMatchObject({ cause: 'port' });
  });

  it.each([
    'proxy.example:3128',
    'socks5://proxy.example',
    'http://proxy.example/path',
    'http://',
    'http://user:100%@proxy.example',
    'http://us%ff:p@proxy.example',
  ])('does not start with %s', (OUTBOUND_PROXY) => {
    expect(() => readConfig({ OUTBOUND_PROXY })).toThrow(/OUTBOUND_PROXY: must be http:\/\/host:port/);
  });
});
