/** The proxy of a run for plain HTTP: targets in absolute-form (RFC 9112, 3.2.2). */
import { connect } from 'node:net';
import { dirname } from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { afterFile } from '../world/runner/after-file.ts';
import { startUpstream } from '../world/servers/upstream.ts';
import { ALLOW_ALL, shared } from '../world/world.ts';
import { profileOf, type Started, sh, startRun } from './run-world.ts';
import { HOST, startTlsWorld } from './tls-world.ts';

type Running = { started: Started; proxy: URL; folder: string };

describe('plain HTTP through the proxy of a run', () => {
  let open: Running;
  let strict: Running;
  const given = shared(() => startTlsWorld());
  const untouched = shared(() => startUpstream(undefined, '127.0.0.2'));
  beforeAll(async () => {
    afterFile(untouched.close);
    const organisation = await given.world.organisation();
    await organisation.platform({ manifest: { base_url: `${given.origin}/v1` } });
    const profile = profileOf(await organisation.agent({ rules: ALLOW_ALL, grants: { demo: {} } }));
    const running = async (...words: string[]): Promise<Running> => {
      const waiting = sh('echo "$http_proxy $SSL_CERT_FILE."; exec sleep 600');
      const started = startRun(profile, ['--proxy', '--verbose', ...words, ...waiting]);
      const [, proxy = '', roots = ''] = /^(\S+) (\S+)\.\n/.exec(await started.written(/\n/)) ?? [];
      return { started, proxy: new URL(proxy), folder: dirname(roots) };
    };
    [open, strict] = await Promise.all([running(), running('--strict')]);
  });
  beforeEach(() => {
    for (const { seen } of [given.platform, untouched]) seen.length = 0;
  });
  const credentials = ({ proxy }: Running) => `Basic ${btoa(`${proxy.username}:${proxy.password}`)}`;
  const tls = () => `${HOST}:${given.port}`;

  /** `lines`: those of the request, without the end of its head; TLS and OTHER stand for the hosts. */
  async function ask(by: Running, lines: readonly string[], { isShown = true, body = '' } = {}): Promise<string> {
    const shown = isShown ? [`Proxy-Authorization: ${credentials(by)}`] : [];
    const head = [...lines, ...shown, 'Connection: close', '', '']
      .join('\r\n')
      .replaceAll('TLS', tls())
      .replaceAll('OTHER', untouched.address);
    const socket = connect(Number(by.proxy.port), '127.0.0.1');
    socket.write(head + body);
    return text(socket);
  }

  test('another host gets the request unchanged, and its answer is returned', async () => {
    untouched.answer = (_, response) => {
      response.writeHead(418, { 'x-own': 'a', 'content-type': 'text/plain' });
      response.end('as it is');
    };
    const lines = ['POST http://OTHER/a%2fb?c HTTP/1.1', 'Host: OTHER', 'Authorization: Bearer own'];
    const chunked = await ask(open, [...lines, 'Transfer-Encoding: chunked'], { body: '3\r\nabc\r\n0\r\n\r\n' });
    expect(chunked).toMatch(/^HTTP\/1.1 418 .*x-own: a\r\n.*as it is/s);
    await ask(open, [...lines, 'Content-Length: 3'], { body: 'abc' });
    const none = await ask(open, ['GET http://OTHER HTTP/1.1', 'Host: OTHER']);
    expect(none).toContain('as it is');
    untouched.answer = undefined;
    const got = untouched.seen.map(({ method, target, body, headers }) => [
      ...[method, target, body, headers.host, headers.authorization],
      headers['proxy-authorization'],
    ]);
    const { address } = untouched;
    expect(got).toEqual([
      ['POST', '/a%2fb?c', 'abc', address, 'Bearer own', undefined],
      ['POST', '/a%2fb?c', 'abc', address, 'Bearer own', undefined],
      ['GET', '/', '', address, undefined, undefined],
    ]);
  });

  const refused: [string, number, string[], isShown?: boolean][] = [
    ['no placeholder', 407, ['GET http://OTHER/ HTTP/1.1', 'Host: OTHER'], false],
    [
      'a request with the Origin header of a browser',
      403,
      ['GET http://OTHER/ HTTP/1.1', 'Host: OTHER', 'Origin: https://evil.example'],
    ],
    ['another Host', 403, ['GET http://OTHER/ HTTP/1.1', 'Host: evil.example']],
    ['a platform with TLS', 403, ['GET http://TLS/v1/items HTTP/1.1', 'Host: TLS']],
    ['another port of a platform', 403, [`GET http://${HOST}/v1/items HTTP/1.1`, `Host: ${HOST}`]],
    ['another scheme', 400, ['GET https://OTHER/ HTTP/1.1', 'Host: OTHER']],
    ['a user in the address', 400, ['GET http://a@OTHER/ HTTP/1.1', 'Host: OTHER']],
    ['port 0', 400, ['GET http://127.0.0.2:0/ HTTP/1.1', 'Host: 127.0.0.2:0']],
    ['a host name that does not resolve', 502, ['GET http://nowhere.invalid/ HTTP/1.1', 'Host: nowhere.invalid']],
  ];
  test.each(refused)('%s: %i', async (_, status, lines, isShown) => {
    const answer = await ask(open, lines, { isShown });
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(/^Proxy-Authenticate: Basic /im.test(answer)).toBe(status === 407);
    expect(answer).not.toContain(open.proxy.password);
    expect([given.platform.seen, untouched.seen]).toEqual([[], []]);
  });

  test('--strict refuses every other host', async () => {
    const answer = await ask(strict, ['GET http://OTHER/ HTTP/1.1', 'Host: OTHER']);
    expect(answer).toMatch(/^HTTP\/1.1 403 .*--strict refuses others/s);
    expect(untouched.seen).toEqual([]);
  });

  test('a host that closes the connection is a 502, and a client that disconnects ends the request', async () => {
    untouched.answer = (request) => request.socket.destroy();
    expect(await ask(open, ['GET http://OTHER/ HTTP/1.1', 'Host: OTHER'])).toMatch(/^HTTP\/1.1 502 .*unreachable/s);
    const ended = new Promise((done) => {
      untouched.answer = (request) => request.socket.once('close', done);
    });
    const asked = `GET http://OTHER/ HTTP/1.1\r\nHost: OTHER\r\nProxy-Authorization: ${credentials(open)}\r\n\r\n`;
    const socket = connect(Number(open.proxy.port), '127.0.0.1');
    socket.write(asked.replaceAll('OTHER', untouched.address));
    await expect.poll(() => untouched.seen.length).toBe(2);
    socket.destroy();
    await ended;
    untouched.answer = undefined;
  });
});
