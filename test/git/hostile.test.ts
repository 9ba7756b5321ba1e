/** Hostile requests to /git on raw sockets, and misbehaving code hosts. None of them leaks a connection or an open record. */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { deflateSync, gzipSync } from 'node:zlib';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { sessionCookieName } from '../../broker/auth/session-cookie.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { evidenceOf } from '../world/evidence.ts';
import { commandList, PROBE, pktLine, ZERO } from '../world/git-bytes.ts';
import { startGitWorld } from '../world/git-world.ts';
import { exchange } from '../world/raw.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { CANARY, shared } from '../world/world.ts';
import { expectNothingLeft, rowsOf } from './nothing-left.ts';

const LIMIT = 1024 * 1024;
const RECEIVE = 'git-receive-pack';
const A = 'a'.repeat(40);

describe.each(ONE_STORE)(`hostile git on %s${postgresNote}`, (store) => {
  let agent: TestAgent;
  let port: number;
  const given = shared(() => startGitWorld(store, { GIT_MAX_REQUEST_BYTES: String(LIMIT) }));
  beforeAll(async () => {
    given.host.repository('acme/app');
    agent = await given.agent();
    port = Number(new URL(given.world.running.baseUrl).port);
  });
  beforeEach(async () => {
    given.host.seen.length = 0;
    given.host.answer = undefined;
    await given.world.forgive();
  });

  const basic = (by = agent) => `Basic ${Buffer.from(`x:${by.token()}`).toString('base64')}`;
  type Lines = Record<string, string>;
  const head = (line: string, headers: Lines = {}): string =>
    [
      `${line} HTTP/1.1`,
      ...Object.entries({ Host: 'localhost', Connection: 'close', Authorization: basic(), ...headers }).map((one) =>
        one.join(': '),
      ),
      '\r\n',
    ].join('\r\n');
  const get = (path: string, headers: Lines = {}) => exchange(port, head(`GET ${path}`, headers));
  const post = (service: string, body: string | Buffer, headers: Lines = {}) => {
    const bytes = Buffer.from(body as string, 'latin1');
    const all = {
      'Content-Type': `application/x-${service}-request`,
      'Content-Length': String(bytes.length),
      ...headers,
    };
    return exchange(port, head(`POST /git/acme/app/${service}`, all) + bytes.toString('latin1'));
  };
  const chunked = (service: string, body: Buffer, headers: Lines = {}) =>
    exchange(
      port,
      `${head(`POST /git/acme/app/${service}`, {
        'Content-Type': `application/x-${service}-request`,
        'Transfer-Encoding': 'chunked',
        ...headers,
      })}${body.length.toString(16)}\r\n${body.toString('latin1')}\r\n0\r\n\r\n`,
    );
  const rows = () => rowsOf(given);
  const newest = async () => (await rows())[0]!;
  const flagsOf = ({ flags }: { flags: string | null }) => JSON.parse(flags ?? '{}');
  const nothingWasSent = () => expect(given.host.seen).toEqual([]);
  /** Expects that no connection to the code host is open, nothing is stored, and no call is in flight. */
  /** Expects a one-line answer with the headers of every /git answer. */
  function expectOneLine(answer: { status: number; head: string; body: string }, status: number, code: string) {
    expect([answer.status, answer.body], answer.head).toEqual([
      status,
      expect.stringMatching(new RegExp(`^agent-broker: ${code} - [^\\n]+\\n$`)),
    ]);
    expect(answer.head).toMatch(/^content-type: text\/plain; charset=utf-8$/im);
    expect(answer.head).toMatch(/^content-security-policy: sandbox; default-src 'none'; frame-ancestors 'none'$/im);
    expect(answer.head).toMatch(/^x-content-type-options: nosniff$/im);
    expect(answer.head).toMatch(/^cross-origin-resource-policy: same-origin$/im);
    expect(answer.head).toMatch(/^cache-control: no-cache$/im);
    expect(answer.head + answer.body).not.toContain(CANARY);
  }

  describe('GT-01 and GT-04: paths', () => {
    test.each([
      '/git/o/r.git/../x/info/refs?service=git-upload-pack',
      '/git/o/r%2f..%2fx/info/refs?service=git-upload-pack',
      '/git/o/%2e%2e/info/refs?service=git-upload-pack',
      '/git/o/../info/refs?service=git-upload-pack',
      '/git/o/./info/refs?service=git-upload-pack',
      '/git/o/.git/info/refs?service=git-upload-pack',
      '/git/o/...git/info/refs?service=git-upload-pack',
      '/git/o/r%00/info/refs?service=git-upload-pack',
      '/git/o/r%/info/refs?service=git-upload-pack',
      '/git//r/info/refs?service=git-upload-pack',
      '/git/o/r//info/refs?service=git-upload-pack',
      '/git/o/r/info%2frefs?service=git-upload-pack',
      '/git/o/r/info/refs/?service=git-upload-pack',
      '/git/o/r/info/refs#?service=git-upload-pack',
      '/git/o/r\\x/info/refs?service=git-upload-pack',
      '/git/o/r;x/info/refs?service=git-upload-pack',
      `/git/o/${'r'.repeat(101)}/info/refs?service=git-upload-pack`,
      '/git/acme/app%20/info/refs?service=git-upload-pack',
      '/git/acme/app/HEAD',
      '/git/acme/app/objects/info/packs',
      '/git/acme/app/objects/pack/pack-1.pack',
      '/git/acme/app/archive',
      '/git/acme/app/git-upload-archive',
      '/git/acme/app',
      '/git/',
      '/git',
    ])('%s is an unknown route', async (path) => {
      expectOneLine(await get(path), 404, 'not_found');
      nothingWasSent();
    });

    test('paths are case-sensitive', async () => {
      expect((await get('/GIT/acme/app/info/refs?service=git-upload-pack')).status).toBe(404);
      expect((await get('/git/acme/app/INFO/refs?service=git-upload-pack')).status).toBe(404);
      nothingWasSent();
    });

    test('LFS is not served, and the answer says so', async () => {
      for (const path of ['/git/acme/app/info/lfs/objects/batch', '/git/acme/app.git/info/lfs/locks']) {
        const answer = await expectStatus(404, get(path));
        expect(answer.head).toMatch(/^content-type: application\/vnd\.git-lfs\+json$/im);
        expect(answer.head).toMatch(/^content-security-policy: sandbox; default-src 'none'; frame-ancestors 'none'$/im);
        // The member that git-lfs shows.
        expect(JSON.parse(answer.body).message).toMatch(/^agent-broker: not_found - Git LFS is not served: /);
      }
      nothingWasSent();
    });

    test('another method answers 405 with the allowed ones', async () => {
      for (const [line, allowed] of [
        ['PUT /git/acme/app/git-upload-pack', 'POST'],
        ['GET /git/acme/app/git-upload-pack', 'POST'],
        ['GET /git/acme/app.git/git-receive-pack', 'POST'],
        ['POST /git/acme/app/info/refs?service=git-upload-pack', 'GET, HEAD'],
        ['POST /git/acme/app/info/refs', 'GET, HEAD'],
      ]) {
        const answer = await exchange(port, head(`${line}`));
        expectOneLine(answer, 405, 'method_not_allowed');
        expect(answer.head).toMatch(new RegExp(`^allow: ${allowed}$`, 'im'));
      }
      nothingWasSent();
      const asGet = await exchange(port, head('HEAD /git/acme/app/info/refs?service=git-upload-pack'));
      expect([asGet.status, asGet.body]).toEqual([200, '']);
    });
  });

  describe('GT-03: services', () => {
    test.each([
      '',
      '?',
      '?service=',
      '?service=git-upload-archive',
      '?service=git-upload-pack&service=git-receive-pack',
      '?service=git-upload-pack&x=1',
      '?x=1&service=git-upload-pack',
      '?service[x]=1',
      '?service=git-upload-pack%0a',
      '?service=git-upload-pack%00',
      '?service=GIT-UPLOAD-PACK',
      '?Service=git-upload-pack',
      '?service=git%2dupload%2dpack',
      '?%73ervice=git-upload-pack',
      '?service[]=git-upload-pack',
      '?service=git-upload-pack&Service=git-receive-pack',
      '?service=git-upload-pack;service=git-receive-pack',
      '?service=git-upload-pack%26service=git-receive-pack',
      '?service=git-upload-pack?service=git-receive-pack',
      '?service=git-upload-pack%23',
      '?service=git-upload-pack+',
    ])('info/refs%s is refused', async (query) => {
      expectOneLine(await get(`/git/acme/app/info/refs${query}`), 400, 'invalid_request');
      nothingWasSent();
    });

    test('a POST with a query is refused', async () => {
      const answer = await exchange(port, head('POST /git/acme/app/git-upload-pack?service=git-receive-pack'));
      expectOneLine(answer, 400, 'invalid_request');
      nothingWasSent();
    });
  });

  describe('browsers', () => {
    test.each<[string, Lines]>([
      ['a navigation', { 'Sec-Fetch-Mode': 'navigate' }],
      ['a frame', { 'Sec-Fetch-Dest': 'iframe', 'Sec-Fetch-Mode': 'no-cors' }],
      ['a script', { 'Sec-Fetch-Dest': 'script' }],
      ['a service worker', { 'Service-Worker': 'script' }],
    ])('%s is refused before anything is sent', async (_, headers) => {
      expectOneLine(await get('/git/acme/app/info/refs?service=git-upload-pack', headers), 403, 'forbidden');
      nothingWasSent();
      const anonymous = await get('/git/acme/app/info/refs?service=git-upload-pack', {
        ...headers,
        Authorization: 'x',
      });
      expectOneLine(anonymous, 403, 'forbidden');
      expect(anonymous.head).not.toMatch(/^www-authenticate/im);
    });

    test("a request with an owner's session cookie is refused", async () => {
      const cookie = `${sessionCookieName(given.world.running.baseUrl)}=x`;
      const answer = await get('/git/acme/app/info/refs?service=git-upload-pack', { Cookie: `a=b; ${cookie}` });
      expectOneLine(answer, 403, 'forbidden');
      nothingWasSent();
    });

    test('other headers of the code host’s answer are not passed on', async () => {
      given.host.answer = (_, response) =>
        response
          .writeHead(200, {
            'content-type': 'application/x-git-upload-pack-advertisement',
            'set-cookie': 'svc_owner=evil',
            'clear-site-data': '"*"',
            'access-control-allow-origin': '*',
            'service-worker-allowed': '/',
            refresh: '0;url=/',
            link: '</x>; rel=preload',
            'alt-svc': 'h2=":1"',
            'x-svc-audit-id': 'forged',
            'cache-control': 'public, max-age=9999',
          })
          .end(PROBE);
      const answer = await get('/git/acme/app/info/refs?service=git-upload-pack', { 'Sec-Fetch-Dest': 'empty' });
      expect(answer.status).toBe(200);
      expect(answer.head).not.toMatch(
        /set-cookie|clear-site|access-control|service-worker|refresh|^link|alt-svc|forged|public/im,
      );
      expect(answer.head).toMatch(/^cache-control: no-cache$/im);
      expect(answer.head).toMatch(/^x-svc-audit-id: [0-9a-f-]{36}$/im);
    });
  });

  describe('GT-14: who asks', () => {
    test('the challenge is sent only when the request has no credential', async () => {
      const path = 'GET /git/acme/app/info/refs?service=git-upload-pack';
      const none = await exchange(port, head(path).replace(/^Authorization: .*\r\n/m, ''));
      expectOneLine(none, 401, 'missing_token');
      expect(none.head).toMatch(/^www-authenticate: Basic realm="/im);
      for (const wrong of [
        `Bearer ${agent.token()}`,
        'Basic',
        'Basic !!',
        `Basic ${btoa('x:')}`,
        `Basic ${btoa('x')}`,
      ]) {
        const answer = await get(path.slice(4), { Authorization: wrong });
        expectOneLine(answer, 401, 'invalid_token');
        expect(answer.head).not.toMatch(/^www-authenticate/im);
      }
      const twice = await exchange(port, head(path).replace('\r\n\r\n', `\r\nAuthorization: ${basic()}\r\n\r\n`));
      expectOneLine(twice, 400, 'invalid_request');
      nothingWasSent();
    });
  });

  describe('GT-09 and GT-10: command lists', () => {
    const create = (ref: string) => `${ZERO} ${A} ${ref}`;
    const pack = 'PACK\0\0\0\x02\0\0\0\0';
    const utf8 = (text: string) => Buffer.from(text).toString('latin1');
    const list = (...commands: string[]) =>
      commandList(commands.map((one, i) => (i === 0 ? `${one}\0 report-status` : one)));

    test.each<[string, string]>([
      ['a length longer than the body', `ffff${'x'.repeat(10)}`],
      ['the length 3', '0003'],
      ['an empty pkt-line', '0004'],
      ['no digits', 'zzzz'],
      ['a sign', '-001'],
      ['a length over the longest', `fff5${'x'.repeat(65521)}`],
      ['no flush', pktLine(`${create('refs/heads/x')}\0`)],
      ['a pack and no list', pack],
      ['a delimiter', `0001${list(create('refs/heads/x'))}`],
      ['12,000 commands', list(...Array.from({ length: 12_000 }, (_, i) => create(`refs/heads/${i}`))).slice(0, LIMIT)],
      ['1,001 commands', list(...Array.from({ length: 1_001 }, (_, i) => create(`refs/heads/${i}`)))],
      ['a ref of 60 KB', list(create(`refs/heads/${'x'.repeat(60_000)}`))],
      ['capabilities on the second line', commandList([create('refs/heads/a'), `${create('refs/heads/b')}\0 atomic`])],
      ['a ref twice', list(create('refs/heads/x'), create('refs/heads/x'))],
      ['created and deleted in one command', list(create('refs/heads/x'), `${A} ${ZERO} refs/heads/x`)],
      ['neither', list(`${ZERO} ${ZERO} refs/heads/x`)],
      ['a line break in a ref', list(create('refs/heads/a\nb'))],
      ['an escape in a ref', list(create('refs/heads/\x1b[31m'))],
      ['a text direction in a ref', list(create('refs/heads/\u202ex')).replaceAll('\u202e', '\xe2\x80\xae')],
      ['dots in a ref', list(create('refs/../x'))],
      ['a ref outside of refs/', list(create('HEAD'))],
      ['a ref without a name space', list(create('refs/x'))],
      ['a folder up in a ref', list(create('refs/heads/agent/../main'))],
      ['a dot as a part of a ref', list(create('refs/heads/agent/x/./y'))],
      ['a slash at the end of a ref', list(create('refs/heads/agent/x/'))],
      ['an empty part of a ref', list(create('refs/heads//agent/x'))],
      ['a blank before a ref', list(create(' refs/heads/x'))],
      ['a carriage return after a ref', list(create('refs/heads/x\r'))],
      ['two line breaks after a ref', commandList([`${create('refs/heads/x')}\n\n`])],
      ['a symbolic ref', list(create('ref: refs/heads/main'))],
      ['a byte order mark before a command', list(`${utf8('\ufeff')}${create('refs/heads/x')}`)],
      ['a byte order mark before a ref', list(create(utf8('\ufeffrefs/heads/x')))],
      ['a blank that does not break in a ref', list(create(utf8('refs/heads/x\u00a0')))],
      ['a letter without a shape in a ref', list(create(utf8('refs/heads/x\u3164')))],
      ['a control character of C1 in a ref', list(create(utf8('refs/heads/x\u0085')))],
      ['half a character in a ref', list(create('refs/heads/\xed\xa0\x80'))],
      ['a slash in two bytes in a ref', list(create('refs/heads/agent\xc0\xafx'))],
      ['a ref of 1,030 bytes in half as many characters', list(create(utf8(`refs/heads/${'é'.repeat(510)}`)))],
      ['a lock', list(create('refs/heads/x.lock'))],
      ['not UTF-8', list(create('refs/heads/\xff'))],
      ['object ids of two lengths', list(`${ZERO} ${'a'.repeat(64)} refs/heads/x`)],
      ['a SHA-256 id without the format', list(`${'0'.repeat(64)} ${'a'.repeat(64)} refs/heads/x`)],
      ['upper case in an id', list(`${ZERO} ${'A'.repeat(40)} refs/heads/x`)],
      ['a signed push', `${pktLine('push-cert\0 report-status')}0000`],
      [
        'a certificate after a command',
        `${commandList([`${create('refs/heads/x')}\0 report-status`, 'push-cert\n', 'push-cert-end\n'])}${pack}`,
      ],
      ['capabilities twice', `${commandList([`${create('refs/heads/x')}\0 atomic\0push-options`])}${pack}`],
      ['a NUL after capabilities', `${commandList([`${create('refs/heads/x')}\0 atomic\0`])}${pack}`],
      ['two NULs before capabilities', `${commandList([`${create('refs/heads/x')}\0\0 atomic`])}${pack}`],
      ['a line break before capabilities', `${commandList([`${create('refs/heads/x')}\n\0 atomic`])}${pack}`],
      [
        'a line break among capabilities',
        `${commandList([`${create('refs/heads/x')}\0 atomic\npush-options`])}${pack}`,
      ],
      ['capabilities alone', `${commandList(['\0 atomic'])}${pack}`],
      ['capabilities of a shallow line', commandList([`shallow ${A}\0 atomic`, create('refs/heads/x')])],
      ['a shallow line of two ids', commandList([`shallow ${A} ${A}`, create('refs/heads/x')])],
      [
        'two object formats',
        `${commandList([`${create('refs/heads/x')}\0 object-format=sha1 object-format=sha256`])}${pack}`,
      ],
      ['a command of protocol v2', `${pktLine('command=ls-refs\n')}0001${pktLine('peel\n')}0000`],
      ['an error packet', `${pktLine('ERR refused')}${list(create('refs/heads/x'))}${pack}`],
      ...['0', '00b', '00b0', `00b0${ZERO}`, `00b0${ZERO} ${A} refs/heads/x\0`].map((cut): [string, string] => [
        `a list that ends at "${cut.slice(0, 4)}", byte ${cut.length}`,
        cut,
      ]),
      ['a pack where it only deletes', `${list(`${A} ${ZERO} refs/heads/x`)}${pack}`],
      ['no pack where it creates', list(create('refs/heads/x'))],
      ['no commands, and a pack', `0000${pack}`],
      [
        '101 push options',
        `${commandList([`${create('refs/heads/x')}\0 push-options`])}${pktLine('o').repeat(101)}0000${pack}`,
      ],
      [
        'a push option of two lines',
        `${commandList([`${create('refs/heads/x')}\0 push-options`])}${pktLine('a\nb')}0000${pack}`,
      ],
      [
        'a push option that is not UTF-8',
        `${commandList([`${create('refs/heads/x')}\0 push-options`])}${pktLine('\xff')}0000${pack}`,
      ],
      [
        'a delimiter among push options',
        `${commandList([`${create('refs/heads/x')}\0 push-options`])}${pktLine('a')}0001${pktLine('b')}0000${pack}`,
      ],
      ['capabilities that are not UTF-8', `${commandList([`${create('refs/heads/x')}\0 agent=\xff`])}${pack}`],
      ['capabilities with a tab', commandList([`${create('refs/heads/x')}\0 a\tpush-options`])],
      ['shallow lines after commands', list(create('refs/heads/x'), `shallow ${A}`)],
      ['nothing', ''],
    ])('%s is malformed, and nothing is sent', async (_, body) => {
      const answer = await post(RECEIVE, Buffer.from(body, 'latin1'));
      expectOneLine(answer, 400, 'invalid_request');
      nothingWasSent();
      const row = await newest();
      expect(row).toMatchObject({
        state: 'final',
        result: 'errored',
        reason: 'invalid_request',
        platform_id: 'codehost',
      });
      await evidenceOf(given.world, agent, row.id);
      expect(answer.head).toContain(row.id);
      await expectNothingLeft(given);
    });

    /** Compresses as several gzip members in sequence, after a thousand empty ones (RFC 1952 section 2.2). */
    function members(body: string, ...cuts: number[]): Buffer {
      const ends = [0, ...cuts, body.length];
      const parts = ends.slice(1).map((end, i) => gzipSync(Buffer.from(body.slice(ends[i], end), 'latin1')));
      return Buffer.concat([...Array<Buffer>(1_000).fill(gzipSync('')), ...parts]);
    }

    test.each<[string, string, { ref: string; action: string }[]]>([
      [
        'a ref named PACK',
        list(create('refs/heads/PACK-evil')) + pack,
        [{ ref: 'refs/heads/PACK-evil', action: 'create' }],
      ],
      [
        'push options and shallow lines',
        `${pktLine(`shallow ${A}`)}${commandList([`${A} ${'b'.repeat(40)} refs/heads/x\0 push-options atomic`])}${pktLine('ci.skip')}0000${pack}`,
        [{ ref: 'refs/heads/x', action: 'update' }],
      ],
      [
        'SHA-256',
        `${commandList([`${'0'.repeat(64)} ${'a'.repeat(64)} refs/tags/v1\0 object-format=sha256`])}${pack}`,
        [{ ref: 'refs/tags/v1', action: 'create' }],
      ],
      ['a deletion without a pack', list(`${A} ${ZERO} refs/heads/x`), [{ ref: 'refs/heads/x', action: 'delete' }]],
    ])('%s is read correctly, and sent byte for byte', async (_, body, refs) => {
      const sent = Promise.withResolvers<Buffer>();
      given.host.answer = (request, response) => {
        const pieces: Buffer[] = [];
        request.on('data', (piece) => pieces.push(piece));
        request.on('end', () => {
          sent.resolve(Buffer.concat(pieces));
          response.writeHead(200, { 'content-type': 'application/x-git-receive-pack-result' }).end(PROBE);
        });
      };
      for (const ask of [
        () => post(RECEIVE, body),
        () => chunked(RECEIVE, Buffer.from(body, 'latin1')),
        () => post(RECEIVE, gzipSync(Buffer.from(body, 'latin1')), { 'Content-Encoding': 'gzip' }),
        () => post(RECEIVE, members(body, 7, 60), { 'Content-Encoding': 'gzip' }),
      ]) {
        const answer = await ask();
        expect(answer.status, answer.body).toBe(200);
        expect((await sent.promise).toString('latin1')).toBe(body);
        expect(flagsOf(await newest()).pushed_refs).toEqual(refs);
      }
      await expectNothingLeft(given);
    });
  });

  test('a push of 1,000 refs with long names is recorded completely', async () => {
    given.host.answer = (request, response) => {
      request.resume();
      response.writeHead(200, { 'content-type': 'application/x-git-receive-pack-result' }).end(PROBE);
    };
    const names = Array.from({ length: 1_000 }, (_, i) => `refs/heads/${'x'.repeat(100)}${i}`);
    const list = commandList(names.map((name) => `${A} ${ZERO} ${name}`));
    expect((await post(RECEIVE, list)).status).toBe(200);
    const { payload } = await evidenceOf(given.world, agent, (await newest()).id);
    expect(payload.pushed_refs).toEqual(names.map((ref) => ({ ref, action: 'delete' })));
  });

  describe('GT-08: large and compressed', () => {
    const bomb = gzipSync(Buffer.alloc(50 * LIMIT));
    test.each<[string, () => ReturnType<typeof post>]>([
      [
        'one byte more than allowed',
        () =>
          exchange(
            port,
            head('POST /git/acme/app/git-upload-pack', {
              'Content-Type': 'application/x-git-upload-pack-request',
              'Content-Length': String(LIMIT + 1),
            }),
          ),
      ],
      ['the same in chunks', () => chunked('git-upload-pack', Buffer.alloc(LIMIT + 1, 'x'))],
      ['a bomb', () => post('git-upload-pack', bomb, { 'Content-Encoding': 'gzip' })],
      ['a bomb in chunks, as a push', () => chunked(RECEIVE, bomb, { 'Content-Encoding': 'x-gzip' })],
    ])('%s answers 413', async (_, ask) => {
      expectOneLine(await ask(), 413, 'git_request_too_large');
      nothingWasSent();
      expect(await newest()).toMatchObject({ reason: 'git_request_too_large', result: 'errored' });
      await expectNothingLeft(given);
    });

    test.each<[string, string | Buffer, Lines]>([
      ['a body that is not gzip', 'not gzip at all', { 'Content-Encoding': 'gzip' }],
      ['gzip that is cut', gzipSync('0000').subarray(0, 12), { 'Content-Encoding': 'gzip' }],
      ['bytes after gzip', Buffer.concat([gzipSync('0000'), Buffer.from('0000')]), { 'Content-Encoding': 'gzip' }],
      [
        'half a member after gzip',
        Buffer.concat([gzipSync('0000'), Buffer.from([0x1f, 0x8b, 8])]),
        { 'Content-Encoding': 'gzip' },
      ],
      ['zlib that is called gzip', deflateSync('0000'), { 'Content-Encoding': 'gzip' }],
      ['a coding without a name', '0000', { 'Content-Encoding': '' }],
      ['a coding on two lines', '0000', { 'Content-Encoding': 'gzip', 'content-encoding': 'identity' }],
      [
        'a parameter of the media type',
        '0000',
        { 'Content-Type': 'application/x-git-upload-pack-request; charset=utf-8' },
      ],
      ['another coding', '0000', { 'Content-Encoding': 'br' }],
      ['two codings', '0000', { 'Content-Encoding': 'gzip, gzip' }],
      ['another media type', '0000', { 'Content-Type': 'application/json' }],
      ['the other service', '0000', { 'Content-Type': 'application/x-git-receive-pack-request' }],
    ])('%s is malformed', async (_, body, headers) => {
      expectOneLine(await post('git-upload-pack', body, headers), 400, 'invalid_request');
      nothingWasSent();
      await expectNothingLeft(given);
    });

    test('a media type in other letter case is accepted (RFC 9110 section 8.3.1)', async () => {
      const type = { 'Content-Type': 'Application/X-Git-Upload-Pack-Request' };
      expect((await post('git-upload-pack', '0000', type)).status).toBe(200);
    });
  });

  describe('refs that a grant does not allow', () => {
    const limited = shared(() => given.agent({ constraints: { repos: ['acme/app'], refs: ['agent/*', 'größe/*'] } }));
    test.each([
      'refs/for/main',
      'refs/pull/1/head',
      `refs/replace/${A}`,
      'refs/Heads/agent/x',
      'refs/heads/Agent/x',
      'refs/heads/refs/heads/agent/x',
      'refs/heads/agent/x/refs/heads/main',
      'refs/remotes/origin/agent/x',
      'refs/heads/\uff41gent/x',
      'refs/heads/agent\uff0fx',
      'refs/heads/agent\u2215x',
      'refs/heads/gro\u0308ße/x',
    ])('a push to %s is refused', async (ref) => {
      const text = commandList([
        `${ZERO} ${A} refs/heads/agent/x\0`,
        `${ZERO} ${A} ${Buffer.from(ref).toString('latin1')}`,
      ]);
      const answer = await post(RECEIVE, `${text}PACK`, { Authorization: basic(limited) });
      expectOneLine(answer, 403, 'repo_not_allowed');
      nothingWasSent();
      const row = await newest();
      expect(row).toMatchObject({ state: 'final', result: 'denied', reason: 'repo_not_allowed' });
      expect(JSON.parse(row.violating ?? 'null')).toEqual([ref]);
      await evidenceOf(given.world, limited, row.id);
      await expectNothingLeft(given);
    });
  });

  describe('several requests on one connection', () => {
    const push = (ref: string) => `${commandList([`${ZERO} ${A} ${ref}\0 report-status`])}PACK`;
    const request = (body: string, headers: Lines) =>
      head(`POST /git/acme/app/${RECEIVE}`, {
        'Content-Type': `application/x-${RECEIVE}-request`,
        'Content-Length': String(body.length),
        Connection: 'keep-alive',
        ...headers,
      }) + body;
    const statusesOf = ({ head: first, body }: { head: string; body: string }) =>
      [...`${first}\r\n\r\n${body}`.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
    beforeEach(() => {
      given.host.answer = (asked, response) => {
        asked.resume();
        asked.on('end', () =>
          response.writeHead(200, { 'content-type': `application/x-${RECEIVE}-result` }).end(PROBE),
        );
      };
    });

    test('pushes after a probe are judged one by one', async () => {
      const limited = await given.agent({ constraints: { refs: ['agent/*'] } });
      const by = { Authorization: basic(limited) };
      const answers = await exchange(
        port,
        [PROBE, push('refs/heads/agent/x'), push('refs/heads/main'), 'zzzz']
          .map((body) => request(body, by))
          .concat(request(push('refs/heads/agent/y'), { ...by, Connection: 'close' }))
          .join(''),
      );
      expect(statusesOf(answers)).toEqual([200, 200, 403, 400, 200]);
      expect(given.host.seen.map(({ headers }) => headers['content-length']).toSorted()).toEqual(['127', '127', '4']);
      // Processed immediately, answered in order.
      expect(
        (await rows())
          .slice(0, 5)
          .map(({ state, reason }) => `${state} ${reason}`)
          .toSorted(),
      ).toEqual(['final approved', 'final approved', 'final invalid_request', 'final probe', 'final repo_not_allowed']);
      await expectNothingLeft(given);
    });

    test('bytes after a probe without a request head are not a push', async () => {
      const answers = await exchange(port, request(PROBE, {}) + push('refs/heads/main'));
      expect(statusesOf(answers)).toContain(400);
      expect(given.host.seen.filter(({ headers }) => headers['content-length'] !== '4')).toEqual([]);
      await expectNothingLeft(given);
    });

    test.each<[string, Lines]>([
      ['another media type', { 'Content-Type': 'application/json' }],
      ['another coding', { 'Content-Encoding': 'br' }],
    ])('a push that is refused for %s is not read as the next request', async (_, wrong) => {
      const inner = request(push('refs/heads/evil'), {});
      const answers = await exchange(port, request(inner, wrong) + request(PROBE, { Connection: 'close' }));
      expect(statusesOf(answers)).toEqual([400, 200]);
      expect(given.host.seen.map(({ headers }) => headers['content-length'])).toEqual(['4']);
      await expectNothingLeft(given);
    });

    test('a transfer coding in addition to chunked is refused', async () => {
      const answer = await chunked(RECEIVE, Buffer.from(push('refs/heads/x'), 'latin1'), {
        'Transfer-Encoding': 'gzip, chunked',
      });
      expect([answer.status, answer.body]).toEqual([501, expect.stringContaining('not_implemented')]);
      nothingWasSent();
      await expectNothingLeft(given);
    });

    test('trailers after chunks are ignored', async () => {
      const body = push('refs/heads/x');
      const answer = await exchange(
        port,
        `${head(`POST /git/acme/app/${RECEIVE}`, {
          'Content-Type': `application/x-${RECEIVE}-request`,
          'Transfer-Encoding': 'chunked',
          Trailer: 'X-Svc-Caller, Git-Protocol',
        })}${body.length.toString(16)};x=y\r\n${body}\r\n0\r\nX-Svc-Caller: slack:U0EVIL\r\nGit-Protocol: version=2\r\nContent-Type: text/html\r\n\r\n`,
      );
      expect(answer.status, answer.body).toBe(200);
      expect(given.host.seen).toHaveLength(1);
      expect(given.host.seen[0]!.headers).toMatchObject({ 'content-type': `application/x-${RECEIVE}-request` });
      expect(given.host.seen[0]!.headers).not.toHaveProperty('git-protocol');
      expect(JSON.stringify(await newest())).not.toContain('U0EVIL');
      await expectNothingLeft(given);
    });
  });

  test.each(['ls-refs', 'fetch', 'object-info', 'bundle-uri'])(
    'the command %s of protocol v2 is a fetch, and sent byte for byte',
    async (command) => {
      const body = `${pktLine(`command=${command}\n`)}0001${pktLine('want-ref refs/heads/main\n')}0000`;
      const sent = Promise.withResolvers<string>();
      given.host.answer = (request, response) => {
        const pieces: Buffer[] = [];
        request.on('data', (piece) => pieces.push(piece));
        request.on('end', () => {
          sent.resolve(Buffer.concat(pieces).toString('latin1'));
          response.writeHead(200, { 'content-type': 'application/x-git-upload-pack-result' }).end(PROBE);
        });
      };
      const reader = await given.agent({ scopes: ['codehost:contents.read'], constraints: { refs: [] } });
      const by = { Authorization: basic(reader), 'Git-Protocol': 'version=2' };
      expect((await post('git-upload-pack', body, by)).status).toBe(200);
      expect(await sent.promise).toBe(body);
      expect(given.host.seen[0]!.headers['git-protocol']).toBe('version=2');
      expect(await newest()).toMatchObject({
        state: 'final',
        reason: 'approved',
        path: '/git/acme/app/git-upload-pack',
      });
      await expectNothingLeft(given);
    },
  );

  describe('GT-17: headers', () => {
    test('only git headers of the agent are forwarded', async () => {
      await get('/git/acme/app/info/refs?service=git-upload-pack', {
        'Git-Protocol': 'version=2:evil',
        'User-Agent': 'git/2.39.5',
        'X-Evil': '1',
        'Accept-Encoding': 'gzip',
        Cookie: 'a=b',
        'X-Forwarded-For': '1.2.3.4',
        'Accept-Language': 'de',
      });
      const { authorization, ...headers } = given.host.seen[0]!.headers;
      expect(authorization).toMatch(/^Basic /);
      expect(headers).toEqual({
        host: given.host.address,
        connection: 'keep-alive',
        'user-agent': 'git/2.39.5',
        accept: '*/*',
        'accept-encoding': 'identity',
      });
      await get('/git/acme/app/info/refs?service=git-upload-pack', {
        'Git-Protocol': 'version=2',
        'User-Agent': 'curl/8',
      });
      expect(given.host.seen[1]!.headers).toMatchObject({
        'git-protocol': 'version=2',
        'user-agent': 'git/agent-broker',
      });
    });
  });

  describe('Expect: 100-continue', () => {
    const expecting = (headers: Lines) =>
      head('POST /git/acme/app/git-upload-pack', {
        'Content-Type': 'application/x-git-upload-pack-request',
        'Content-Length': '4',
        Expect: '100-continue',
        ...headers,
      });
    async function first(bytes: string): Promise<string> {
      const socket = connect(port, '127.0.0.1');
      onTestFinished(() => void socket.destroy());
      socket.write(bytes);
      return String((await once(socket, 'data'))[0]).split('\r\n')[0] ?? '';
    }

    test('is answered for an agent that may send', async () => {
      expect(await first(expecting({}))).toBe('HTTP/1.1 100 Continue');
    });

    test('is not answered for an unauthenticated client, or for a body that is too large', async () => {
      expect(await first(expecting({ Authorization: 'Basic eDp4' }))).toContain(' 401 ');
      expect(await first(expecting({ 'Content-Length': String(LIMIT + 1) }))).toContain(' 413 ');
    });
  });

  describe('misbehaving code hosts, and clients that disconnect', () => {
    const PACK_TYPE = { 'content-type': 'application/x-git-upload-pack-result' };
    const fetching = (body: string = PROBE) =>
      head('POST /git/acme/app/git-upload-pack', {
        'Content-Type': 'application/x-git-upload-pack-request',
        'Content-Length': String(body.length),
      }) + body;
    const want = `${pktLine(`want ${A}\n`)}0000${pktLine('done\n')}`;
    async function open(bytes: string): Promise<Socket> {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => {});
      onTestFinished(() => void socket.destroy());
      socket.write(bytes, 'latin1');
      return socket;
    }
    const openConnections = () => given.host.connections();

    test('an answer that is cut is cut for the client, and recorded as cut', async () => {
      given.host.answer = (_, response) => {
        response.writeHead(200, { ...PACK_TYPE, 'content-length': 100 });
        response.write('0008some');
        setTimeout(() => response.destroy(), 50);
      };
      const answer = await exchange(port, fetching(want));
      expect(answer.body).toContain('0008some');
      expect(answer.body).not.toMatch(/0\r\n\r\n$/);
      const row = await newest();
      expect(flagsOf(row)).toMatchObject({ ended: 'upstream_closed', answer_bytes: 8 });
      await expectNothingLeft(given);
    });

    test('a pack that contains the credential is broken off', async () => {
      given.host.answer = (_, response) => response.writeHead(200, PACK_TYPE).end(`0040 some ${CANARY} more`);
      const answer = await exchange(port, fetching(want));
      expect(answer.head + answer.body).not.toContain(CANARY.slice(0, 12));
      expect(await newest()).toMatchObject({ result: 'blocked', reason: 'upstream_response_blocked' });
      await expectNothingLeft(given);
    });

    test('an advertisement that contains the credential in base64 answers an error line', async () => {
      given.host.answer = (_, response) =>
        response
          .writeHead(200, { 'content-type': 'application/x-git-upload-pack-advertisement' })
          .end(`0040 ${Buffer.from(`x-access-token:${CANARY}`).toString('base64')}`);
      expectOneLine(await get('/git/acme/app/info/refs?service=git-upload-pack'), 502, 'upstream_response_blocked');
      await expectNothingLeft(given);
    });

    test('a long advertisement is recorded before its first byte is passed on', async () => {
      let states: string[] = [];
      const release = Promise.withResolvers<void>();
      given.host.answer = async (_, response) => {
        response.writeHead(200, { 'content-type': 'application/x-git-upload-pack-advertisement' });
        response.write(Buffer.alloc(1024 * 1024 + 1, 'x'));
        await release.promise;
        response.end('y');
      };
      const socket = await open(head('GET /git/acme/app/info/refs?service=git-upload-pack'));
      await once(socket, 'data');
      states = (await rows()).filter(({ reason }) => reason !== 'x').map(({ state }) => state);
      release.resolve();
      expect(states[0]).toBe('intent');
      await once(socket, 'close');
      expect(await newest()).toMatchObject({ state: 'final', reason: 'advertised' });
      await expectNothingLeft(given);
    });

    test('GT-16: a client disconnects during the answer', async () => {
      given.host.answer = (_, response) => {
        response.writeHead(200, PACK_TYPE);
        const more = setInterval(() => response.write(Buffer.alloc(10_000)), 5);
        response.on('close', () => clearInterval(more));
      };
      const socket = await open(fetching(want));
      await once(socket, 'data');
      socket.destroy();
      await expect.poll(openConnections, { timeout: 5_000 }).toBe(0);
      await expect.poll(async () => flagsOf(await newest()).ended, { timeout: 5_000 }).toBe('client_closed');
      await expectNothingLeft(given);
    });

    test('a client disconnects before the code host answers', async () => {
      const asked = Promise.withResolvers<void>();
      given.host.answer = () => asked.resolve();
      const socket = await open(fetching(want));
      await asked.promise;
      socket.destroy();
      await expect.poll(openConnections, { timeout: 5_000 }).toBe(0);
      await expectNothingLeft(given);
      expect(await newest()).toMatchObject({ state: 'final', result: 'errored', reason: 'upstream_unreachable' });
      expect(flagsOf(await newest())).toMatchObject({ code: 'client_closed', outcome: 'unknown' });
    });

    test('GT-16: a client disconnects in the middle of its body: nothing is sent', async () => {
      const socket = await open(fetching(want).replace(/Content-Length: \d+/, 'Content-Length: 5000'));
      await new Promise((resolve) => setTimeout(resolve, 200));
      socket.destroy();
      await expect.poll(newest).toMatchObject({
        state: 'final',
        result: 'errored',
        reason: 'request_cut',
        path: '/git/acme/app/git-upload-pack',
      });
      await expectNothingLeft(given);
      nothingWasSent();
      expect((await evidenceOf(given.world, agent, (await newest()).id)).payload).toMatchObject({ result: 'errored' });
    });

    test('clients that disconnect in the middle of their commands do not halt the agent', async () => {
      const begun = head('POST /git/acme/app/git-receive-pack', {
        'Content-Type': 'application/x-git-receive-pack-request',
        'Content-Length': '500000',
      });
      // More than the number of malformed requests that halts an agent.
      const sockets = await Promise.all(Array.from({ length: 60 }, () => open(`${begun}00b0`)));
      await expect.poll(() => given.world.running.services.budget.held.calls, { timeout: 5_000 }).toBe(60);
      for (const socket of sockets) socket.destroy();
      await expectNothingLeft(given);
      expect(await newest()).toMatchObject({ reason: 'request_cut', path: '/git/acme/app/git-receive-pack' });
      nothingWasSent();
      expect((await get('/git/acme/app/info/refs?service=git-upload-pack')).head).toMatch(/^HTTP\/1.1 200 /);
    });
  });
});
