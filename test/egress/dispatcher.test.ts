import { createServer } from 'node:net';
import zlib from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { makeOutbound } from '../../broker/egress/dispatcher.ts';
import { fixedUpstream, get, httpUpstream, outboundTo, rawUpstream } from './upstream.ts';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}';

describe('a request and its answer', () => {
  it('are passed on unchanged', async () => {
    await using upstream = await httpUpstream((request, response) => {
      let body = '';
      request.on('data', (chunk) => {
        body += chunk;
      });
      request.on('end', () => {
        response.writeHead(418, { 'x-a': ['1', '2'], 'content-type': 'text/plain' });
        response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers, body }));
      });
    });
    await using outbound = outboundTo(upstream);
    const answer = await outbound.send({
      url: upstream.url('/v1/a%2Fb?x=%26&y'),
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer abc' },
      body: '{"é":1}',
    });
    if (answer.kind !== 'answer') throw new Error(answer.detail);
    expect(answer.status).toBe(418);
    expect(answer.headers['x-a']).toEqual(['1', '2']);
    expect(JSON.parse(answer.body.toString())).toEqual({
      method: 'POST',
      url: '/v1/a%2Fb?x=%26&y',
      body: '{"é":1}',
      headers: {
        host: upstream.origin,
        connection: 'keep-alive',
        'content-type': 'application/json',
        authorization: 'Bearer abc',
        'accept-encoding': 'gzip, br',
        'content-length': '8',
      },
    });
  });

  it('connections are kept alive, and limited in number', async () => {
    let most = 0;
    let now = 0;
    await using upstream = await httpUpstream((_, response) => {
      most = Math.max(most, ++now);
      setImmediate(() => {
        now--;
        response.end('{}');
      });
    });
    await using outbound = outboundTo(upstream, { connectionsPerOrigin: 4 });
    const answers = await Promise.all(Array.from({ length: 200 }, () => outbound.send(get(upstream.url()))));
    expect(answers.every((answer) => answer.kind === 'answer')).toBe(true);
    expect(upstream.connections()).toBe(4);
    expect(most).toBeLessThanOrEqual(4);
  });

  it('SS-12 connections are never shared between different connection keys', async () => {
    await using upstream = await fixedUpstream(OK);
    await using outbound = outboundTo(upstream);
    for (const connectionKey of ['a', 'a', 'b', 'b', 'a']) {
      await outbound.send(get(upstream.url(), { connectionKey }));
      // undici frees a connection one event loop turn after its answer.
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    }
    expect(upstream.connections()).toBe(2);
  });

  it('the least recently used origins are evicted', async () => {
    await using upstream = await fixedUpstream(OK);
    await using outbound = outboundTo(upstream, { maxOrigins: 2 });
    for (const connectionKey of ['a', 'b', 'a', 'c', 'a', 'b']) {
      expect(await outbound.send(get(upstream.url(), { connectionKey }))).toMatchObject({ status: 200 });
    }
    expect(upstream.connections()).toBe(4);
  });

  it('a connection that the upstream closed while idle is replaced without an error', async () => {
    await using upstream = await rawUpstream((socket) => {
      socket.write(OK);
      setImmediate(() => socket.end());
    });
    await using outbound = outboundTo(upstream);
    for (let i = 0; i < 5; i++) {
      expect(await outbound.send({ ...get(upstream.url()), method: 'POST', body: '{}' })).toMatchObject({
        status: 200,
      });
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    }
  });

  it('a request is sent only once, even when the connection breaks', async () => {
    await using upstream = await rawUpstream((socket) => socket.destroy());
    await using outbound = outboundTo(upstream);
    expect(await outbound.send(get(upstream.url('/once')))).toMatchObject({ code: 'connection_lost', sent: true });
    expect(upstream.received().match(/GET \/once/g)).toHaveLength(1);
  });

  it('SS-01 redirects are not followed', async () => {
    await using target = await fixedUpstream(OK);
    await using upstream = await fixedUpstream(
      `HTTP/1.1 302 Found\r\nlocation: http://${target.origin}/\r\ncontent-length: 0\r\n\r\n`,
    );
    await using outbound = outboundTo([upstream, target]);
    expect(await outbound.send(get(upstream.url()))).toMatchObject({ kind: 'answer', status: 302 });
    expect(target.connections()).toBe(0);
  });

  it('SS-11 proxies from environment variables are ignored', async () => {
    await using proxy = await fixedUpstream(OK);
    await using upstream = await fixedUpstream(OK);
    const names = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'ALL_PROXY', 'NODE_USE_ENV_PROXY'];
    const before = names.map((name) => [name, process.env[name]] as const);
    for (const name of names) process.env[name] = name === 'NODE_USE_ENV_PROXY' ? '1' : `http://${proxy.origin}`;
    try {
      await using outbound = outboundTo(upstream);
      expect(await outbound.send(get(upstream.url()))).toMatchObject({ status: 200 });
    } finally {
      for (const [name, value] of before) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    }
    expect([proxy.connections(), upstream.connections()]).toEqual([0, 1]);
  });
});

describe('requests that are not sent', () => {
  it('an invalid request is refused, and takes no connection slot', async () => {
    await using upstream = await fixedUpstream(OK);
    await using outbound = outboundTo(upstream, { connectionsPerOrigin: 2 });
    const url = upstream.url();
    const bad = [
      { headers: { 'x-a': 'a\r\nEvil: 1' } },
      { headers: { 'x-a': 'é' } },
      { headers: { 'x a': '1' } },
      { headers: { 'X-A': '1' } },
      { headers: { '': '1' } },
      { headers: { host: 'evil.test' } },
      { headers: { 'content-length': '3' } },
      { headers: { 'transfer-encoding': 'chunked' } },
      { headers: { connection: 'close' } },
      { headers: { upgrade: 'x' } },
      { headers: { expect: '100-continue' } },
      { headers: { 'x-a': 1 as unknown as string } },
      { method: 'CONNECT' },
      { method: 'GET\r\nX: y' },
      { method: 'get' },
      { body: '{}' },
      { url: new URL(`http://u:p@${upstream.origin}/`) },
    ];
    for (const more of bad) {
      expect(await outbound.send(get(url, more)), JSON.stringify(more)).toMatchObject({
        code: 'bad_request',
        sent: false,
      });
    }
    expect(upstream.connections()).toBe(0);
    expect(await outbound.send(get(url))).toMatchObject({ status: 200 });
    expect(await outbound.send(get(url))).toMatchObject({ status: 200 });
  });

  it('a refused address is never connected to', async () => {
    await using upstream = await fixedUpstream(OK);
    const outbound = makeOutbound({ allowPrivate: [] });
    const answer = await outbound.send(get(upstream.url()));
    expect(answer).toEqual({
      kind: 'unreachable',
      code: 'address_refused',
      sent: false,
      cause: 'scheme',
      detail:
        'The address of the server is not one that this broker may connect to: it is not public, and the operator has not allowed it (AGENT_BROKER_ALLOW_PRIVATE).',
    });
    expect(await outbound.send(get(new URL(`https://127.0.0.1:${upstream.port}/`)))).toMatchObject({ cause: 'port' });
    expect(await outbound.send(get(new URL('https://127.0.0.1/')))).toMatchObject({ cause: 'loopback' });
    expect(upstream.connections()).toBe(0);
    await outbound.close();
  });

  it('too many waiting calls are refused, and timed-out ones make room', async () => {
    await using upstream = await rawUpstream(() => {});
    await using outbound = outboundTo(upstream, {
      connectionsPerOrigin: 1,
      maxWaitingPerOrigin: 2,
      idleTimeoutMs: 100,
    });
    const first = [1, 2, 3].map(() => outbound.send(get(upstream.url())));
    expect(await outbound.send(get(upstream.url()))).toMatchObject({ code: 'busy', sent: false });
    const answers = await Promise.all(first);
    expect(
      answers.map((answer) => [
        answer.kind === 'unreachable' && answer.code,
        answer.kind === 'unreachable' && answer.sent,
      ]),
    ).toEqual([
      ['timeout', true],
      ['timeout', false],
      ['timeout', false],
    ]);
    expect(await outbound.send(get(upstream.url()))).toMatchObject({ code: 'timeout', sent: true });
    expect(upstream.received().match(/GET/g)).toHaveLength(2);
  });

  it('close ends requests in flight, and nothing is sent afterwards', async () => {
    await using upstream = await rawUpstream(() => {});
    const outbound = outboundTo(upstream);
    const running = outbound.send(get(upstream.url()));
    while (upstream.received() === '') await new Promise((resolve) => setImmediate(resolve));
    await outbound.close();
    expect(await running).toMatchObject({ code: 'closed', sent: true });
    expect(await outbound.send(get(upstream.url()))).toMatchObject({ code: 'closed', sent: false });
    expect(upstream.connections()).toBe(1);
  });
});

describe('BD-15 misbehaving upstreams', () => {
  const json = (head: string, body = '') => `HTTP/1.1 200 OK\r\n${head}\r\n\r\n${body}`;
  const limits = { idleTimeoutMs: 150, totalTimeoutMs: 600, maxResponseBytes: 100_000 };

  const send = async (answer: string | Buffer, end = true) => {
    await using upstream = await fixedUpstream(answer, end);
    await using outbound = outboundTo(upstream, limits);
    return await outbound.send(get(upstream.url()));
  };

  it.each([
    ['nothing at all', '', true, 'connection_lost'],
    ['nothing, and stays', '', false, 'timeout'],
    ['garbage', 'hello world, this is not HTTP\r\n\r\n', true, 'broken_answer'],
    ['binary garbage', Buffer.from([0, 255, 254, 13, 10, 0, 1, 2, 3]), true, 'broken_answer'],
    ['half a header', 'HTTP/1.1 200 OK\r\ncontent-le', true, 'connection_lost'],
    ['half a header, and stays', 'HTTP/1.1 200 OK\r\ncontent-le', false, 'timeout'],
    ['less than it said', json('content-length: 100', 'abc'), true, 'connection_lost'],
    ['less than it said, and stays', json('content-length: 100', 'abc'), false, 'timeout'],
    ['a huge content-length', json('content-length: 1000000000', 'abc'), false, 'too_large'],
    ['a content-length that is no number', json('content-length: abc', 'abc'), true, 'broken_answer'],
    ['two content-lengths', json('content-length: 2\r\ncontent-length: 3', '{}'), true, 'broken_answer'],
    [
      'content-length and chunked',
      json('content-length: 2\r\ntransfer-encoding: chunked', '2\r\n{}\r\n0\r\n\r\n'),
      true,
      'broken_answer',
    ],
    ['a bad chunk size', json('transfer-encoding: chunked', 'zz\r\n{}\r\n0\r\n\r\n'), true, 'broken_answer'],
    ['chunks without an end', json('transfer-encoding: chunked', '2\r\n{}\r\n'), true, 'connection_lost'],
    ['chunks that never go on', json('transfer-encoding: chunked', '2\r\n{}\r\n'), false, 'timeout'],
    // A coding that no request allows (RFC 9112 section 7.4): the credential would not be found in it.
    ['a transfer coding', json('transfer-encoding: gzip, chunked', '1\r\nx\r\n0\r\n\r\n'), true, 'broken_answer'],
    [
      'a transfer coding in a header of its own',
      json('transfer-encoding: deflate\r\ntransfer-encoding: chunked', '1\r\nx\r\n0\r\n\r\n'),
      true,
      'broken_answer',
    ],
    ['1 MB of one header', json(`x-a: ${'a'.repeat(1_000_000)}`, '{}'), true, 'too_large'],
    [
      '1 MB of many headers',
      json(Array.from({ length: 20_000 }, (_, i) => `x-${i}: ${'a'.repeat(40)}`).join('\r\n'), '{}'),
      true,
      'too_large',
    ],
    ['a header with a NUL', json('x-a: a\0b\r\ncontent-length: 2', '{}'), true, 'broken_answer'],
    ['status 600', 'HTTP/1.1 600 Odd\r\ncontent-length: 2\r\n\r\n{}', true, 'broken_answer'],
    ['status 999', 'HTTP/1.1 999 Odd\r\ncontent-length: 2\r\n\r\n{}', true, 'broken_answer'],
    ['status 099', 'HTTP/1.1 099 Odd\r\ncontent-length: 2\r\n\r\n{}', true, 'connection_lost'],
    ['status 100 unasked', `HTTP/1.1 100 Continue\r\n\r\n${OK}`, true, 'connection_lost'],
    [
      'status 101 unasked',
      'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
      true,
      'connection_lost',
    ],
    ['a flood of 1xx', `HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n`.repeat(1_000) + OK, true, 'broken_answer'],
    ['an unknown coding', json('content-encoding: zstd\r\ncontent-length: 2', '{}'), true, 'broken_answer'],
    ['broken gzip', json('content-encoding: gzip\r\ncontent-length: 5', 'abcde'), true, 'broken_answer'],
    ['HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', true, 'broken_answer'],
  ])('%s', async (_, answer, end, code) => {
    const started = performance.now();
    expect(await send(answer, end)).toMatchObject({ kind: 'unreachable', code, sent: true });
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  it.each([
    ['0 bytes', json('content-length: 0'), 200, ''],
    ['204', 'HTTP/1.1 204 No Content\r\n\r\n', 204, ''],
    ['304', 'HTTP/1.1 304 Not Modified\r\n\r\n', 304, ''],
    ['no length, then the end', json('content-type: text/plain', 'abc'), 200, 'abc'],
    ['one early hint', `HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${OK}`, 200, '{}'],
    [
      'a header called __proto__',
      json('__proto__: a\r\n__proto__: b\r\nconstructor: c\r\ncontent-length: 2', '{}'),
      200,
      '{}',
    ],
    ['status 599', 'HTTP/1.1 599 Odd\r\ncontent-length: 2\r\n\r\n{}', 599, '{}'],
    ['an identity transfer coding', json('transfer-encoding: identity, Chunked', '2\r\n{}\r\n0\r\n\r\n'), 200, '{}'],
  ])('%s is accepted as an answer', async (_, answer, status, body) => {
    const got = await send(answer);
    if (got.kind !== 'answer') throw new Error(got.code);
    expect([got.status, got.body.toString()]).toEqual([status, body]);
    expect(({} as Record<string, unknown>).a).toBeUndefined();
  });

  it('surplus bytes of an answer reach no later call', async () => {
    await using upstream = await fixedUpstream(`${OK}HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n"evil"`);
    await using outbound = outboundTo(upstream);
    for (let i = 0; i < 3; i++) {
      const answer = await outbound.send(get(upstream.url()));
      expect(answer.kind === 'answer' && answer.body.toString()).toBe('{}');
    }
  });

  it('an answer of 100 MB is cut off, with and without a length, in bounded memory', async () => {
    const chunk = Buffer.alloc(1_000_000, 'a');
    for (const head of ['content-length: 100000000', 'x-a: 1', 'transfer-encoding: chunked']) {
      let written = 0;
      await using upstream = await rawUpstream((socket) => {
        socket.write(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n`);
        const write = () => {
          if (written >= 100 || socket.destroyed) return socket.end();
          written++;
          const framed = head.startsWith('transfer') ? `f4240\r\n${chunk}\r\n` : chunk;
          return socket.write(framed, () => write());
        };
        write();
      });
      await using outbound = outboundTo(upstream);
      expect(await outbound.send(get(upstream.url()))).toMatchObject({ code: 'too_large', sent: true });
      expect(written).toBeLessThan(50);
    }
  });

  it('a slowly dripping answer is cut off by the total timeout', async () => {
    await using upstream = await rawUpstream((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n');
      const timer = setInterval(() => socket.write('a'), 30);
      socket.on('close', () => clearInterval(timer));
    });
    // On a busy machine drops may be late.
    await using outbound = outboundTo(upstream, { ...limits, idleTimeoutMs: 5_000 });
    const started = performance.now();
    expect(await outbound.send(get(upstream.url()))).toMatchObject({ code: 'timeout', cause: 'total', sent: true });
    expect(performance.now() - started).toBeGreaterThan(550);
    expect(await outbound.send(get(upstream.url(), { totalTimeoutMs: 100 }))).toMatchObject({ code: 'timeout' });
  });

  it('a reset in the middle of the answer fails', async () => {
    await using upstream = await rawUpstream((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc', () => socket.resetAndDestroy());
    });
    await using outbound = outboundTo(upstream);
    expect(await outbound.send(get(upstream.url()))).toMatchObject({
      code: expect.stringMatching(/connection_lost|broken/),
      sent: true,
    });
  });

  it('a refused connection fails', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as { port: number };
    await new Promise((resolve) => server.close(resolve));
    const outbound = makeOutbound({ allowPrivate: [`127.0.0.1:${port}`] });
    const answer = await outbound.send(get(new URL(`http://127.0.0.1:${port}/`)));
    expect(answer).toMatchObject({ code: 'connect_failed', sent: false, cause: 'ECONNREFUSED' });
    await outbound.close();
  });

  it('the next call works after each of these failures', async () => {
    let bad = true;
    await using upstream = await rawUpstream((socket) => {
      if (bad) socket.end('garbage\r\n\r\n');
      else socket.write(OK);
      bad = !bad;
    });
    await using outbound = outboundTo(upstream, { connectionsPerOrigin: 1 });
    for (let i = 0; i < 10; i++) {
      expect((await outbound.send(get(upstream.url()))).kind).toBe(i % 2 === 0 ? 'unreachable' : 'answer');
    }
  });
});

describe('CX-02 content codings', () => {
  const text = JSON.stringify({ hello: 'world'.repeat(100) });
  const coded = (coding: string, body: Buffer) =>
    Buffer.concat([
      Buffer.from(`HTTP/1.1 200 OK\r\ncontent-encoding: ${coding}\r\ncontent-length: ${body.length}\r\n\r\n`),
      body,
    ]);

  it.each([
    ['gzip', zlib.gzipSync(text)],
    ['X-GZIP', zlib.gzipSync(text)],
    ['br', zlib.brotliCompressSync(text)],
    ['deflate', zlib.deflateSync(text)],
    ['deflate', zlib.deflateRawSync(text)],
    ['identity', Buffer.from(text)],
    ['br, gzip', zlib.gzipSync(zlib.brotliCompressSync(text))],
  ])('%s is decoded', async (coding, body) => {
    await using upstream = await fixedUpstream(coded(coding, body));
    await using outbound = outboundTo(upstream);
    const answer = await outbound.send(get(upstream.url()));
    expect(answer.kind === 'answer' && answer.body.toString()).toBe(text);
  });

  it.each([
    ['gzip', zlib.gzipSync(Buffer.alloc(100_000_000))],
    [
      'br',
      zlib.brotliCompressSync(Buffer.alloc(100_000_000), { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } }),
    ],
    ['deflate', zlib.deflateSync(Buffer.alloc(100_000_000))],
    ['gzip, gzip', zlib.gzipSync(zlib.gzipSync(Buffer.alloc(100_000_000)))],
  ])('BD-15 a %s bomb of 100 MB is cut off', async (coding, body) => {
    await using upstream = await fixedUpstream(coded(coding, body));
    await using outbound = outboundTo(upstream);
    const before = process.memoryUsage().rss;
    expect(await outbound.send(get(upstream.url()))).toMatchObject({ code: 'too_large', sent: true });
    expect(process.memoryUsage().rss - before).toBeLessThan(100_000_000);
  });

  it('three codings and truncated data are refused, an empty body is accepted', async () => {
    for (const [coding, body] of [
      ['gzip, gzip, gzip', zlib.gzipSync(zlib.gzipSync(zlib.gzipSync(text)))],
      ['gzip', zlib.gzipSync(text).subarray(0, 30)],
    ] as const) {
      await using upstream = await fixedUpstream(coded(coding, body));
      await using outbound = outboundTo(upstream);
      expect(await outbound.send(get(upstream.url()))).toMatchObject({
        code: 'broken_answer',
        cause: 'content_encoding',
      });
    }
    await using upstream = await fixedUpstream(coded('gzip', Buffer.alloc(0)));
    await using outbound = outboundTo(upstream);
    expect(await outbound.send(get(upstream.url()))).toMatchObject({ status: 200, body: Buffer.alloc(0) });
  });
});
