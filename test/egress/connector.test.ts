import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { makeConnector, peerRefusal } from '../../broker/egress/connector.ts';
import { makeOutbound } from '../../broker/egress/dispatcher.ts';
import { checkTarget, readTargetRules } from '../../broker/egress/target.ts';
import { certificateFor } from './certificate.ts';
import { fixedUpstream, get, lookupOf, outboundTo, rawUpstream, tlsUpstream } from './upstream.ts';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}';
const PUBLIC = '93.184.215.14';

/** One call to a public name that resolves to these addresses. */
async function callPublic(...answers: (string[] | Error)[]) {
  const { lookup, asked } = lookupOf(...answers);
  const outbound = makeOutbound({ allowPrivate: [], lookup, idleTimeoutMs: 300, connectTimeoutMs: 200 });
  const answer = await outbound.send(get(new URL('https://up.test/')));
  await outbound.close();
  return { answer, asked: asked() };
}

describe('SS-05 every address of a name is checked', () => {
  it.each([
    [[PUBLIC, '::1'], 'loopback'],
    [['::1', PUBLIC], 'loopback'],
    [[PUBLIC, '169.254.169.254'], 'linkLocal'],
    [['10.0.0.1'], 'private'],
    [['64:ff9b::a9fe:a9fe', PUBLIC], 'rfc6052'],
    [['not an address'], 'not_an_address'],
  ])('%j is refused', async (addresses, cause) => {
    const { answer, asked } = await callPublic(addresses);
    expect(answer).toMatchObject({ code: 'address_refused', sent: false, cause });
    expect(asked).toBe(1);
  });

  it('no connection is made to a name with one forbidden address, even when the other would be allowed', async () => {
    await using upstream = await fixedUpstream(OK);
    const { lookup } = lookupOf(['127.0.0.1', '169.254.169.254']);
    await using outbound = outboundTo([], { lookup, allowPrivate: [`up.test:${upstream.port}`] });
    const answer = await outbound.send(get(new URL(`http://up.test:${upstream.port}/`)));
    expect(answer).toMatchObject({ code: 'address_refused', cause: 'linkLocal', sent: false });
    expect(upstream.connections()).toBe(0);
  });

  it('a name with allowed addresses only is called under its name (counter-example)', async () => {
    await using upstream = await rawUpstream((socket) => socket.end(OK));
    const { lookup } = lookupOf(['127.0.0.1', '127.0.0.1']);
    await using outbound = outboundTo([], { lookup, allowPrivate: [`up.test:${upstream.port}`] });
    expect(await outbound.send(get(new URL(`http://up.test:${upstream.port}/`)))).toMatchObject({ status: 200 });
    expect(upstream.received()).toContain(`host: up.test:${upstream.port}\r\n`);
  });
});

describe('the target of a redirect', () => {
  it.each([[['10.0.0.1']], [[PUBLIC, '127.0.0.1']]])(
    'is never connected to at one of %j, even when the operator listed it',
    async (addresses) => {
      const { lookup } = lookupOf(addresses, addresses);
      await using outbound = outboundTo([], { lookup, allowPrivate: ['up.test:443'], connectTimeoutMs: 200 });
      const request = get(new URL('https://up.test/'));
      // An existing connection to the same host, opened for the platform, must not be used for it.
      await outbound.send(request);
      const answer = await outbound.send({ ...request, publicOnly: true });
      expect(answer).toMatchObject({ code: 'address_refused', sent: false });
    },
  );
});

describe('SS-06 rebinding', () => {
  it('a name is resolved once per connection, and the connection goes to that address', async () => {
    await using upstream = await fixedUpstream(OK, true);
    const { lookup, asked } = lookupOf(['127.0.0.1'], ['169.254.169.254'], ['127.0.0.1']);
    await using outbound = outboundTo([], { lookup, allowPrivate: [`up.test:${upstream.port}`] });
    const url = new URL(`http://up.test:${upstream.port}/`);
    expect(await outbound.send(get(url))).toMatchObject({ status: 200 });
    expect(asked()).toBe(1);
    expect(await outbound.send(get(url))).toMatchObject({ code: 'address_refused', cause: 'linkLocal', sent: false });
    expect(await outbound.send(get(url))).toMatchObject({ status: 200 });
    expect([asked(), upstream.connections()]).toEqual([3, 2]);
  });

  it('SS-04 the peer is checked again, and must be one of the resolved addresses', () => {
    const options = {
      target: { ok: true, host: 'up.test', port: 443, listed: 'no' } as const,
      rules: { allowPrivate: new Set<string>(), own: [] },
    };
    expect(peerRefusal(PUBLIC, [PUBLIC], options)).toBeUndefined();
    expect(peerRefusal('8.8.8.8', [PUBLIC], options)).toBe('not_resolved');
    expect(peerRefusal('127.0.0.1', ['127.0.0.1'], options)).toBe('loopback');
    expect(peerRefusal('::ffff:127.0.0.1', ['127.0.0.1'], options)).toBe('ipv4Mapped');
  });
});

describe('SS-08 the broker itself', () => {
  it('is refused when a listed name resolves to it', async () => {
    await using upstream = await fixedUpstream(OK);
    const { lookup } = lookupOf(['127.0.0.1']);
    const allowPrivate = [`up.test:${upstream.port}`];
    await using outbound = outboundTo([], { lookup, allowPrivate, own: [`0.0.0.0:${upstream.port}`] });
    const answer = await outbound.send(get(new URL(`http://up.test:${upstream.port}/`)));
    expect(answer).toMatchObject({ code: 'address_refused', cause: 'own_address', sent: false });
    expect(upstream.connections()).toBe(0);
  });
});

describe('SS-07 DNS failures are refusals', () => {
  it.each([
    ['an error', Object.assign(new Error('getaddrinfo ENOTFOUND up.test'), { code: 'ENOTFOUND' }), 'ENOTFOUND'],
    ['no addresses', [], undefined],
  ])('%s', async (_, answers, cause) => {
    const { answer } = await callPublic(answers);
    expect(answer).toEqual({
      kind: 'unreachable',
      code: 'dns_failed',
      sent: false,
      detail: 'The host name of the server could not be resolved.',
      ...(cause === undefined ? {} : { cause }),
    });
  });

  it('a resolver that never answers', async () => {
    await using outbound = outboundTo([], { lookup: () => {}, idleTimeoutMs: 100 });
    expect(await outbound.send(get(new URL('https://up.test/')))).toMatchObject({ code: 'timeout', sent: false });
  });
});

describe('TLS', () => {
  const certificate = certificateFor('up.test');
  const { lookup } = lookupOf(['127.0.0.1']);

  it('verifies the certificate of the name, and resumes the session', async () => {
    const seen: unknown[] = [];
    await using upstream = await tlsUpstream(certificate, (socket) => {
      seen.push([socket.servername, socket.alpnProtocol || 'none', socket.isSessionReused()]);
    });
    const allowPrivate = [`up.test:${upstream.port}`];
    await using outbound = outboundTo([], { lookup, allowPrivate, ca: certificate.cert });
    const url = new URL(`https://up.test:${upstream.port}/`);
    expect(await outbound.send(get(url))).toMatchObject({ status: 200 });
    expect(await outbound.send(get(url))).toMatchObject({ status: 200 });
    expect(seen).toEqual([
      ['up.test', 'none', false],
      ['up.test', 'none', true],
    ]);
    expect(upstream.received()).toContain(`host: up.test:${upstream.port}\r\n`);
  });

  describe.each([undefined, '0'])('with NODE_TLS_REJECT_UNAUTHORIZED %s', (unverified) => {
    beforeEach(() => vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', unverified));
    afterEach(() => vi.unstubAllEnvs());

    it.each([
      ['an untrusted certificate', 'up.test', undefined, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
      ['a certificate for another name', 'other.test', certificate.cert, 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ])('%s is refused before anything is sent', async (_, name, ca, cause) => {
      await using upstream = await tlsUpstream(certificate);
      const allowPrivate = [`${name}:${upstream.port}`];
      await using outbound = outboundTo([], { lookup, allowPrivate, ...(ca ? { ca } : {}) });
      const answer = await outbound.send(
        get(new URL(`https://${name}:${upstream.port}/`), { headers: { authorization: 'x' } }),
      );
      expect(answer).toMatchObject({ code: 'tls_failed', sent: false, cause });
      expect(upstream.received()).toBe('');
    });
  });

  it('a server without TLS, or without any response, fails', async () => {
    await using plain = await fixedUpstream('HTTP/1.1 400 Bad Request\r\n\r\n', true);
    await using silent = await rawUpstream(() => {});
    await using closing = await rawUpstream((socket) => socket.destroy());
    const ports = [plain, silent, closing].map((upstream) => upstream.port);
    await using outbound = outboundTo([], {
      lookup,
      allowPrivate: ports.map((port) => `up.test:${port}`),
      connectTimeoutMs: 150,
    });
    const answers = await Promise.all(ports.map((port) => outbound.send(get(new URL(`https://up.test:${port}/`)))));
    expect(answers).toMatchObject([
      { code: 'tls_failed', sent: false },
      { code: 'timeout', sent: false, cause: 'connect' },
      { code: 'tls_failed', sent: false },
    ]);
  });

  it('a call that timed out while connecting sends nothing later', async () => {
    let go = () => {};
    const held = (
      _: string,
      __: unknown,
      done: (error: null, found: { address: string; family: number }[]) => void,
    ) => {
      go = () => done(null, [{ address: '127.0.0.1', family: 4 }]);
    };
    await using upstream = await rawUpstream((socket) => socket.end(OK));
    const allowPrivate = [`up.test:${upstream.port}`];
    await using outbound = outboundTo([], { lookup: held, allowPrivate, idleTimeoutMs: 60 });
    const answer = await outbound.send(get(new URL(`http://up.test:${upstream.port}/`)));
    expect(answer).toMatchObject({ code: 'timeout', sent: false });
    go();
    while (upstream.connections() === 0) await new Promise((resolve) => setImmediate(resolve));
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(upstream.received()).toBe('');
  });

  it.each(['up.test', 'other.test'])(
    'a socket to %s is removed from those being connected, also when TLS fails',
    async (name) => {
      await using upstream = await tlsUpstream(certificate);
      const url = new URL(`https://${name}:${upstream.port}/`);
      const rules = readTargetRules({ allowPrivate: [url.host], own: [] });
      const target = checkTarget(url, rules);
      if (!target.ok) return expect.unreachable(target.refused);
      const connecting = new Set<Socket>();
      const connect = makeConnector({ target, rules, lookup, timeoutMs: 5_000, ca: certificate.cert, connecting });
      const connected = await new Promise((resolve) => {
        const to = { hostname: name, host: url.host, protocol: url.protocol, port: url.port };
        connect(to, (error, socket) => resolve(error === null && socket.destroy() !== undefined));
        expect(connecting.size).toBe(1);
      });
      expect(connected).toBe(name === 'up.test');
      expect(connecting.size).toBe(0);
    },
  );
});
