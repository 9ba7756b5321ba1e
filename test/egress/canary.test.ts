/** CX-06: for any behaviour of an upstream, an error contains nothing of the request: neither its credential nor its URL. */
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { Secret } from '../../broker/crypto/secret.ts';
import { readAnswer } from '../../broker/egress/answers/answer.ts';
import { makeCredentialPatterns } from '../../broker/egress/credential-search/patterns.ts';
import { type Answer, makeOutbound, type Outbound } from '../../broker/egress/dispatcher.ts';
import { type AuthPlacement, buildRequest } from '../../broker/egress/rest.ts';
import { certificateFor } from './certificate.ts';
import {
  fixedUpstream,
  httpUpstream,
  lookupOf,
  outboundTo,
  rawUpstream,
  tlsUpstream,
  type Upstream,
} from './upstream.ts';

const CANARY = 'CANARY-7f3a9bcdef-0123456789';
const placements: AuthPlacement[] = [
  { type: 'bearer' },
  { type: 'basic' },
  { type: 'header', name: 'x-key' },
  { type: 'query', name: 'key' },
];

async function callWith(outbound: Outbound, baseUrl: string, auth: AuthPlacement): Promise<Answer> {
  const call = {
    method: 'POST',
    endpoint: { path: '/private/place', query: 'q=hidden' },
    headers: {},
    body: { secret: 'inner' },
  } as const;
  const built = await buildRequest({ baseUrl, auth }, call, new Secret(CANARY), 0);
  if (!built.ok) throw new Error(built.detail);
  return await outbound.send(built.request);
}

function expectClean(answer: Answer): void {
  expect(answer.kind).toBe('unreachable');
  const everything = [
    JSON.stringify(answer),
    inspect(answer, { depth: 9, showHidden: true }),
    ...Object.values(answer).map(String),
  ].join('\n');
  for (const needle of [
    CANARY,
    'CANARY',
    btoa(`${CANARY}:`),
    'private',
    'hidden',
    'inner',
    '127.0.0.1',
    'up.test',
    'authorization',
    'x-key',
  ]) {
    expect(everything).not.toContain(needle);
  }
}

/** Echoes the first bytes of the request, as `make` arranges them. */
const echo = (make: (request: string) => string) => rawUpstream((socket, text) => socket.end(make(text)));

describe('CX-06 errors are fixed texts', () => {
  it.each<[string, () => Promise<Upstream>]>([
    ['echoes the request as its answer', () => echo((text) => text)],
    ['echoes it in a broken status line', () => echo((text) => `HTTP/1.1 2 ${text}`)],
    ['echoes it in a broken header', () => echo((text) => `HTTP/1.1 200 OK\r\nx a\0: ${text}\r\n\r\n`)],
    [
      'echoes it in a header that is too large',
      () => echo((text) => `HTTP/1.1 200 OK\r\nx-a: ${text.replaceAll(/\s/g, ' ').repeat(1_000)}\r\n\r\n`),
    ],
    [
      'echoes it in a bad chunk size',
      () => echo((text) => `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${text}`),
    ],
    ['echoes it as invalid gzip', () => echo((text) => `HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n${text}`)],
    ['names it as its content coding', () => echo(() => `HTTP/1.1 200 OK\r\ncontent-encoding: ${CANARY}\r\n\r\nx`)],
    ['names it in its length', () => echo(() => `HTTP/1.1 200 OK\r\ncontent-length: 999999999999${CANARY}\r\n\r\nx`)],
    ['sends too much', () => echo((text) => `HTTP/1.1 200 OK\r\n\r\n${text.repeat(1_000)}`)],
    ['resets', () => rawUpstream((socket) => socket.resetAndDestroy())],
    ['closes', () => rawUpstream((socket) => socket.end())],
    ['hangs', () => rawUpstream(() => {})],
  ])('%s', async (_, make) => {
    await using upstream = await make();
    await using outbound = outboundTo(upstream, { idleTimeoutMs: 60, maxResponseBytes: 1_000 });
    for (const auth of placements) expectClean(await callWith(outbound, `http://${upstream.origin}`, auth));
  });

  it('DNS failures, refused addresses, TLS failures and refused connections', async () => {
    const certificate = certificateFor('other.test');
    await using upstream = await tlsUpstream(certificate);
    const { lookup } = lookupOf(['127.0.0.1']);
    const failing = lookupOf(new Error(`getaddrinfo ENOTFOUND up.test ${CANARY}`)).lookup;
    const allowPrivate = [`up.test:${upstream.port}`, 'up.test:1'];
    await using known = outboundTo([], { lookup, allowPrivate });
    await using trusting = outboundTo([], { lookup, allowPrivate, ca: certificate.cert });
    await using lost = outboundTo([], { lookup: failing, allowPrivate });
    const bare = makeOutbound({ allowPrivate: [], lookup });
    for (const auth of placements) {
      expectClean(await callWith(known, `https://up.test:${upstream.port}`, auth));
      expectClean(await callWith(trusting, `https://up.test:${upstream.port}`, auth));
      expectClean(await callWith(known, 'http://up.test:1', auth));
      expectClean(await callWith(lost, `https://up.test:${upstream.port}`, auth));
      expectClean(await callWith(bare, 'https://up.test', auth));
      expectClean(await callWith(bare, `http://up.test:${upstream.port}`, auth));
    }
    await bare.close();
    expectClean(await callWith(bare, 'https://up.test', { type: 'bearer' }));
  });
});

describe('CX-01, CX-02 an upstream that echoes the request', () => {
  it('is passed on without the credential, for every placement and content coding', async () => {
    const zlib = await import('node:zlib');
    await using upstream = await httpUpstream((request, response) => {
      const text = JSON.stringify({ url: request.url, headers: request.headers, raw: request.rawHeaders });
      const coding = ['gzip', 'br', 'deflate', ''][Number(request.headers['x-turn'])] ?? '';
      const body = {
        gzip: zlib.gzipSync,
        br: zlib.brotliCompressSync,
        deflate: zlib.deflateSync,
        '': (plain: string) => Buffer.from(plain),
      }[coding];
      response.writeHead(200, {
        'content-type': 'application/json',
        ...(coding ? { 'content-encoding': coding } : {}),
      });
      response.end(body?.(text));
    });
    await using outbound = outboundTo(upstream);
    for (const auth of placements) {
      for (const turn of ['0', '1', '2', '3']) {
        const call = { method: 'GET', endpoint: { path: '/echo', query: '' }, headers: { 'x-turn': turn } } as const;
        const built = await buildRequest({ baseUrl: `http://${upstream.origin}`, auth }, call, new Secret(CANARY), 0);
        if (!built.ok) throw new Error(built.detail);
        const answer = await outbound.send(built.request);
        if (answer.kind !== 'answer') throw new Error(answer.code);
        const shown = readAnswer(answer, makeCredentialPatterns(new Secret(CANARY), { basic: auth.type === 'basic' }));
        expect(shown).toMatchObject({ kind: 'data', redacted: true });
        const text = JSON.stringify(shown);
        for (const needle of [CANARY, btoa(CANARY).slice(0, -4), btoa(`${CANARY}:`)])
          expect(text).not.toContain(needle);
        expect(text).toContain('[redacted]');
      }
    }
  });
  it('nothing is redacted when the credential is not echoed (counter-example)', async () => {
    await using upstream = await fixedUpstream(
      'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}',
    );
    await using outbound = outboundTo(upstream);
    const answer = await callWith(outbound, `http://${upstream.origin}`, { type: 'bearer' });
    if (answer.kind !== 'answer') throw new Error(answer.code);
    expect(readAnswer(answer, makeCredentialPatterns(new Secret(CANARY)))).toMatchObject({
      data: '{}',
      redacted: false,
    });
  });
});
