/** Raw requests (HD-10, HD-12, JW-17 to JW-20, DOS-04): those that Node refuses, and those that the broker has to. One store is enough. */
import net from 'node:net';
import { beforeAll, describe, expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { expectEnvelope, withoutCalls } from '../world/evidence.ts';
import { exchange, type RawAnswer } from '../world/raw.ts';
import { givenWorld, READ, shared } from '../world/world.ts';

const BODY = JSON.stringify(READ);

describe('hostile HTTP', () => {
  let port: number;
  let host: string;
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent());
  beforeAll(() => {
    port = Number(new URL(world.running.baseUrl).port);
    host = `Host: localhost:${port}`;
  });

  /** Sends lines and a body, and checks that no call is made. */
  const ask = (lines: readonly string[], body = '', eol = '\r\n'): Promise<RawAnswer> =>
    withoutCalls(world, () => exchange(port, `${lines.join(eol)}${eol}${eol}${body}`));
  const bearer = () => `Authorization: Bearer ${agent.token()}`;
  const post = (more: readonly string[], body = BODY, length = true) =>
    ask(
      [
        'POST /v1/actions HTTP/1.1',
        'Content-Type: application/json',
        ...(length ? [`Content-Length: ${Buffer.byteLength(body)}`] : []),
        ...more,
      ],
      body,
    );
  const errorOf = (answer: RawAnswer): unknown => JSON.parse(answer.body).error;

  test('control: the same bytes in the right order are accepted', async () => {
    const before = world.upstream.seen.length;
    const text = [
      'POST /v1/actions HTTP/1.1',
      host,
      bearer(),
      'Content-Type: application/json',
      `Content-Length: ${BODY.length}`,
    ];
    await expectStatus(200, exchange(port, `${[...text, 'Connection: close'].join('\r\n')}\r\n\r\n${BODY}`));
    expect(world.upstream.seen.length).toBe(before + 1);
  });

  describe('HD-12 framing', () => {
    test.each<[string, string[]]>([
      ['both Transfer-Encoding and Content-Length', ['Transfer-Encoding: chunked']],
      ['two Content-Lengths', ['Content-Length: 4']],
      ['a folded header', ['X-A: b', ' c']],
      ['a space before the colon', ['X-A : b']],
      ['a NUL in a header', ['X-A: b\0c']],
      ['a bare CR in a header', ['X-A: b\rX-C: d']],
      ['an unknown transfer coding', ['Transfer-Encoding: xchunked']],
      ['a header without a colon', ['X-A']],
      ['a negative Content-Length', ['Content-Length: -1']],
    ])('%s', async (_name, lines) => {
      const answer = await post([host, bearer(), ...lines]);
      expect([answer.status, errorOf(answer)]).toEqual([400, 'invalid_request']);
      expect(answer.head).toContain(`X-Correlation-Id: ${JSON.parse(answer.body).correlation_id}`);
    });

    test.each(['gzip, chunked', 'identity, chunked'])('Transfer-Encoding: %s', async (coding) => {
      const lines = [host, bearer(), `Transfer-Encoding: ${coding}`, 'Connection: close'];
      const answer = await post(lines, '2\r\n{}\r\n0\r\n\r\n', false);
      expect([answer.status, errorOf(answer)]).toEqual([501, 'not_implemented']);
    });

    test('line ends of LF only', async () => {
      expect((await ask(['GET /health HTTP/1.1', host, 'Connection: close'], '', '\n')).status).toBe(400);
    });

    test('an invalid chunk size, and a body that ends too early', async () => {
      await expectStatus(400, post([host, bearer(), 'Transfer-Encoding: chunked'], 'zz\r\n{}\r\n0\r\n\r\n', false));
      await withoutCalls(world, async () => {
        const socket = net.connect(port, '127.0.0.1');
        const head = [
          'POST /v1/actions HTTP/1.1',
          host,
          bearer(),
          'Content-Type: application/json',
          'Content-Length: 1000',
        ];
        socket.end(`${head.join('\r\n')}\r\n\r\n${BODY}`);
        await new Promise((resolve) => socket.on('close', resolve).resume());
      });
    });
  });

  test('more than 200 headers are a 431, not a request without the rest of them', async () => {
    const asked = (count: number) => {
      // Besides Host, Authorization and Connection.
      const others = Array.from({ length: count - 3 }, (_, i) => `A${i.toString(36)}:`);
      return ask(['GET /v1/agents/me HTTP/1.1', host, bearer(), 'Connection: close', ...others]);
    };
    expect((await asked(200)).status).toBe(200);
    for (const count of [201, 2_000]) {
      const answer = await asked(count);
      expect([answer.status, errorOf(answer)]).toEqual([431, 'invalid_request']);
    }
  });

  describe('after 196 other headers, none of which may be dropped', () => {
    const others = Array.from({ length: 196 }, (_, i) => `A${i.toString(36)}:`);
    const asked = (path: string, last: string) =>
      ask([`GET ${path} HTTP/1.1`, host, bearer(), 'Connection: close', ...others, last]);

    test('control: an irrelevant header is accepted', async () => {
      expect((await asked('/v1/agents/me', 'Z: 1')).status).toBe(200);
      expect((await asked('/metrics', 'Z: 1')).status).toBe(200);
    });

    test('a second token and a second host are detected', async () => {
      for (const last of [bearer(), 'Host: evil.test']) {
        const answer = await asked('/v1/agents/me', last);
        expect([last, answer.status, errorOf(answer)]).toEqual([last, 400, 'invalid_request']);
      }
    });

    test('forwarding headers of a local proxy are detected: /metrics stays closed to strangers', async () => {
      expect((await asked('/metrics', 'X-Forwarded-For: 203.0.113.9')).status).toBe(404);
    });
  });

  describe('HD-10 the requested host', () => {
    test.each<[string, string[], number, string]>([
      ['another host', ['Host: evil.test'], 421, 'misdirected_request'],
      ['another host with our port', ['Host: evil.test:PORT'], 421, 'misdirected_request'],
      ['a host that begins like ours', ['Host: localhost.evil.test'], 421, 'misdirected_request'],
      ['no Host header', [], 400, 'invalid_request'],
      ['an empty Host header', ['Host:'], 421, 'misdirected_request'],
      ['two Host headers, ours first', ['Host: localhost', 'Host: evil.test'], 400, 'invalid_request'],
      ['two Host headers, ours last', ['Host: evil.test', 'Host: localhost'], 400, 'invalid_request'],
      ['the same Host header twice', ['Host: localhost', 'host: localhost'], 400, 'invalid_request'],
    ])('%s', async (_name, hosts, status, error) => {
      const lines = hosts.map((line) => line.replace('PORT', String(port)));
      for (const path of ['/health', '/v1/agents/me', '/nowhere']) {
        const answer = await ask([`GET ${path} HTTP/1.1`, ...lines, bearer(), 'Connection: close']);
        expect(answer.status).toBe(status);
        if (error) expect(errorOf(answer)).toBe(error);
        expect(answer.body).not.toContain('evil');
      }
    });

    test('HTTP/1.0 health checks without a host are accepted, other hosts are not', async () => {
      expect((await ask(['GET /readyz HTTP/1.0'])).status).toBe(200);
      expect((await ask(['GET /readyz HTTP/1.0', 'Host: evil.test'])).status).toBe(421);
      expect((await ask(['GET http://evil.test/readyz HTTP/1.0'])).status).toBe(421);
      expect((await ask(['GET /readyz HTTP/1.0', 'Host:'])).status).toBe(421);
    });

    test('authorization queries refuse another host in their own error format (RFC 7807)', async () => {
      const answer = await ask(['POST /v1/trqp/recognition HTTP/1.1', 'Host: evil.test', 'Connection: close']);
      expect([answer.status, errorOf(answer)]).toEqual([421, 'misdirected_request']);
      expect(answer.head).toContain('Content-Type: application/problem+json');
    });

    test('an absolute target determines the host (RFC 9112 section 3.2.2)', async () => {
      const foreign = await ask(['GET http://evil.test/health HTTP/1.1', host, 'Connection: close']);
      expect([foreign.status, errorOf(foreign)]).toEqual([421, 'misdirected_request']);
      const own = await ask([`GET http://localhost:${port}/health HTTP/1.1`, 'Host: evil.test', 'Connection: close']);
      expect(own.status).toBe(200);
      await expectStatus(400, ask(['GET health HTTP/1.1', host, 'Connection: close']));
    });

    test('addresses in answers come from the configuration, never from the request', async () => {
      const id = (await agent.act(READ)).body._meta.audit_id;
      for (const path of [`/v1/audit/${id}/receipt`, '/v1/agent/permissions', '/v1/agents/me']) {
        const answer = await agent.get(path, {
          'x-forwarded-host': 'evil.test',
          'x-forwarded-proto': 'https',
          forwarded: 'host=evil.test',
        });
        expect(answer.status).toBe(200);
        expect(answer.text).not.toContain('evil');
      }
    });
  });

  describe('JW-17 to JW-20 the Authorization header', () => {
    test('JW-17 two Authorization headers, in either order and case', async () => {
      for (const lines of [
        [bearer(), 'Authorization: Bearer x'],
        ['Authorization: Bearer x', bearer()],
        [bearer(), bearer()],
        [bearer(), bearer().replace('Authorization', 'authorization')],
        ['Authorization:', bearer()],
      ]) {
        const answer = await post([host, ...lines, 'Connection: close']);
        expect([answer.status, errorOf(answer)]).toEqual([400, 'invalid_request']);
      }
    });

    test('JW-20 headers beyond 16 KiB are a 431, a token beyond 8 KiB a 401', async () => {
      const large = await post([host, `Authorization: Bearer ${'x'.repeat(17_000)}`]);
      expect([large.status, errorOf(large)]).toEqual([431, 'invalid_request']);
      // So much is not read to its end, and the answer may be lost to the reset.
      expect([0, 431]).toContain((await post([host, `Authorization: Bearer ${'x'.repeat(2_000_000)}`])).status);
      expect((await post([host, bearer(), `X-A: ${'x'.repeat(17_000)}`])).status).toBe(431);
      const answer = await post([host, `Authorization: Bearer ${'x'.repeat(8_193)}`, 'Connection: close']);
      expect([answer.status, errorOf(answer)]).toEqual([401, 'invalid_token']);
    });

    test('JW-18 a token in Latin-1, with a tab, or with a NUL is invalid', async () => {
      for (const value of ['Bearer \xe9', `Bearer\t${agent.token()}`, `Bearer ${agent.token()} x`]) {
        const answer = await post([host, `Authorization: ${value}`, 'Connection: close']);
        expect([answer.status, errorOf(answer)]).toEqual([401, 'invalid_token']);
      }
    });
  });

  describe('other requests', () => {
    test.each<[string, number]>([
      ['OPTIONS * HTTP/1.1', 404],
      ['OPTIONS /v1/actions HTTP/1.1', 405],
      ['TRACE /health HTTP/1.1', 405],
      ['PROPFIND /v1/actions HTTP/1.1', 405],
      ['GET /V1/agents/me HTTP/1.1', 404],
      ['GET /v1/agents/me/ HTTP/1.1', 404],
      ['GET //v1/agents/me HTTP/1.1', 404],
      ['GET /v1/%61gents/me HTTP/1.1', 404],
      ['GET /v1/agents%2fme HTTP/1.1', 404],
      ['GET /v1/../health HTTP/1.1', 404],
      ['GET /v1/audit/%zz/receipt HTTP/1.1', 404],
      ['GET /health HTTP/3.7', 400],
      ['get /health HTTP/1.1', 400],
    ])('%s', async (line, status) => {
      expect((await ask([line, host, bearer(), 'Connection: close'])).status).toBe(status);
    });

    test('a client that starts with HTTP/2 gets an answer that names the supported versions', async () => {
      const answer = await exchange(port, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
      expect([answer.status, errorOf(answer)]).toEqual([505, 'invalid_request']);
      expect(answer.body).toContain('use HTTP/1.1');
    });

    test('AZ-12 no address allows pages of other sites to send or read', async () => {
      const origin = ['Origin: https://evil.test', 'Access-Control-Request-Headers: authorization, x-svc-csrf'];
      for (const [method, path] of [
        ['POST', '/v1/actions'],
        ['GET', '/v1/approvals/x'],
        ['POST', '/v1/approvals/passkeys/sign/begin'],
        ['POST', '/v1/approvals/passkeys/register/finish'],
        ['GET', '/owner/approvals'],
        ['POST', '/owner/approvals/x/approve'],
        ['GET', '/owner/events'],
        ['GET', '/approve/x/request'],
      ]) {
        const preflight = [`OPTIONS ${path} HTTP/1.1`, host, ...origin, `Access-Control-Request-Method: ${method}`];
        const plain = [`${method} ${path} HTTP/1.1`, host, ...origin, bearer(), 'Content-Length: 0'];
        for (const lines of [preflight, plain]) {
          const answer = await ask([...lines, 'Connection: close']);
          expect([path, answer.status >= 400], answer.head).toEqual([path, true]);
          expect(answer.head).not.toMatch(/^access-control-/im);
        }
      }
    });

    test('CONNECT opens no tunnel, and an Upgrade switches to no other protocol', async () => {
      const tunnel = await ask(['CONNECT evil.test:443 HTTP/1.1', host]);
      expect([tunnel.status, errorOf(tunnel)]).toEqual([405, 'method_not_allowed']);
      expect(tunnel.head).toContain('Allow: GET, HEAD, POST, PUT, PATCH, DELETE');
      const upgrade = await ask(['GET /health HTTP/1.1', host, 'Connection: Upgrade, close', 'Upgrade: websocket']);
      expect([200, 400]).toContain(upgrade.status);
    });

    test('an unknown expectation is a 417, and 100-continue is supported', async () => {
      const unknown = await post([host, bearer(), 'Expect: foo', 'Connection: close']);
      expect([unknown.status, errorOf(unknown)]).toEqual([417, 'invalid_request']);
      const lines = [
        'POST /v1/actions HTTP/1.1',
        host,
        bearer(),
        'Content-Type: application/json',
        'Connection: close',
      ];
      const text = `${[...lines, `Content-Length: ${BODY.length}`, 'Expect: 100-continue'].join('\r\n')}\r\n\r\n${BODY}`;
      expect((await exchange(port, text)).status).toBe(200);
    });

    test('NUL in a path parameter never reaches the database', async () => {
      const answer = await organisation.ask('POST', '/owner/agents/%00/suspend', {});
      expectEnvelope(answer, 404, 'not_found');
      expect(await world.db.selectFrom('agents').select('status').where('status', '=', 'suspended').execute()).toEqual(
        [],
      );
    });

    test('DOS-04 bodies that never arrive block no other request', async () => {
      const head = ['POST /v1/actions HTTP/1.1', host, 'Content-Type: application/json', 'Content-Length: 100000'];
      const sockets = Array.from({ length: 50 }, () => {
        const socket = net.connect(port, '127.0.0.1').on('error', () => {});
        socket.write(`${head.join('\r\n')}\r\n\r\n{"a":`);
        return socket;
      });
      expect((await agent.act(READ)).status).toBe(200);
      for (const socket of sockets) socket.destroy();
      expect((await agent.act(READ)).status).toBe(200);
    });
  });
});
