import { Agent, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { SANDBOX_MANIFEST, SANDBOX_POLICY, startSandbox } from '../../lab/sandbox.ts';
import { expectStatus } from '../world/agent.ts';
import { fresh } from '../world/world.ts';

const TOKEN = 'sandbox-token-for-these-tests';
const NOW = Date.parse('2026-03-01T12:00:00Z');

const sandbox = fresh(() => startSandbox({ token: TOKEN, clock: () => NOW }));
afterEach(() => sandbox.close());

type Thing = { id: string; number: number; title: string; subject: string; state: string };
type Content = Thing & { error: string; message: string; fields: { field: string }[]; items: Thing[]; total: number };
type Answer = { status: number; headers: Headers; body: Content };

async function ask(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const init: RequestInit = { method, headers: { authorization: `Bearer ${TOKEN}`, ...headers } };
  if (body !== undefined) {
    init.body = typeof body === 'string' ? body : JSON.stringify(body);
    init.headers = { 'content-type': 'application/json', ...init.headers };
  }
  const answer = await fetch(sandbox.url + path, init);
  const text = await answer.text();
  if (text !== '') expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  return { status: answer.status, headers: answer.headers, body: JSON.parse(text === '' ? 'null' : text) };
}

describe('the bearer', () => {
  test('nothing is answered without a token, and the challenge names the scheme', async () => {
    const answer = await expectStatus(401, fetch(`${sandbox.url}/issues`));
    expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="sandbox"');
    expect(await answer.json()).toMatchObject({ error: 'missing_token' });
  });

  test.each([`Bearer ${TOKEN}x`, `Bearer ${TOKEN.slice(1)}`, `Basic ${TOKEN}`, 'Bearer', `Bearer  ${TOKEN}`])(
    'a wrong credential %j is refused as invalid_token',
    async (authorization) => {
      const { status, body, headers } = await ask('GET', '/issues', undefined, { authorization });
      expect([status, body.error]).toEqual([401, 'invalid_token']);
      expect(headers.get('www-authenticate')).toBe('Bearer realm="sandbox", error="invalid_token"');
      expect(JSON.stringify(body)).not.toContain(TOKEN);
    },
  );

  test('the scheme is read without regard to case', async () => {
    expect((await ask('GET', '/issues', undefined, { authorization: `bearer ${TOKEN}` })).status).toBe(200);
  });

  test('without a token an unknown path is a 401, too, so that paths cannot be probed', async () => {
    expect((await fetch(`${sandbox.url}/nothing`)).status).toBe(401);
  });

  test.each(['', 'short', 'has a space in it somewhere', 'x'.repeat(513)])(
    'the sandbox does not start with the token %j',
    async (token) => {
      await expect(startSandbox({ token })).rejects.toThrow(/16 to 512/);
    },
  );
});

describe('issues', () => {
  test('the list is open issues, newest first, in pages', async () => {
    const { body } = await expectStatus(200, ask('GET', '/issues?per_page=2&page=2'));
    expect(body).toMatchObject({ page: 2, per_page: 2, total: 5 });
    expect(body.items.map((issue) => issue.number)).toEqual([3, 2]);
    expect((await ask('GET', '/issues?page=99')).body.items).toEqual([]);
  });

  test('state selects issues', async () => {
    expect((await ask('GET', '/issues?state=closed')).body.total).toBe(2);
    expect((await ask('GET', '/issues?state=all')).body.total).toBe(7);
  });

  test.each([
    ['state=shut', 'state'],
    ['page=0', 'page'],
    ['page=1.5', 'page'],
    ['page=1e3', 'page'],
    ['per_page=101', 'per_page'],
    ['colour=red', 'colour'],
    ['__proto__=1', '__proto__'],
  ])('the query %s is a 400 that names %s', async (query, field) => {
    const { status, body } = await ask('GET', `/issues?${query}`);
    expect([status, body.error]).toEqual([400, 'invalid_query']);
    expect(body.message).toContain(field);
  });

  test('a duplicate query name is a 400', async () => {
    const { status, body } = await ask('GET', '/issues?page=1&page=2');
    expect([status, body.error]).toEqual([400, 'invalid_query']);
  });

  test('one issue is read, and an unknown one is a 404', async () => {
    expect((await ask('GET', '/issues/7')).body).toMatchObject({ number: 7, state: 'open' });
    for (const number of ['8', '0', '-1', '7.0', 'seven', '%37', '']) {
      const { status, body } = await ask('GET', `/issues/${number}`);
      expect([status, body.error]).toEqual([404, 'not_found']);
    }
  });

  test('an issue is created, found at its Location, changed and deleted', async () => {
    const made = await expectStatus(201, ask('POST', '/issues', { title: 'Till prints twice', labels: ['bug'] }));
    const created_at = new Date(NOW).toISOString();
    expect(made.body).toMatchObject({ number: 8, title: 'Till prints twice', body: '', state: 'open', created_at });
    const place = made.headers.get('location') ?? '';
    expect((await ask('GET', place)).body).toEqual(made.body);

    const changed = await ask('PATCH', place, { state: 'closed' });
    expect([changed.status, changed.body.state, changed.body.title]).toEqual([200, 'closed', 'Till prints twice']);

    expect((await ask('DELETE', place)).status).toBe(204);
    expect((await ask('GET', place)).status).toBe(404);
    expect((await ask('DELETE', place)).status).toBe(404);
    expect((await ask('POST', '/issues', { title: 'Next' })).body.number).toBe(9);
  });

  test.each([
    [{}, 'title'],
    [{ title: '' }, 'title'],
    [{ title: 7 }, 'title'],
    [{ title: 'x'.repeat(201) }, 'title'],
    [{ title: 'x', labels: 'bug' }, 'labels'],
    [{ title: 'x', number: 1 }, 'number'],
    ['[]', 'expected object'],
    ['null', 'expected object'],
    ['{"title":"x","__proto__":{"state":"closed"}}', '__proto__'],
  ])('the new issue %j is a 400 that names %s, and changes nothing', async (given, field) => {
    const { status, body } = await ask('POST', '/issues', given);
    expect([status, body.error]).toEqual([400, 'invalid_body']);
    expect(body.message).toContain(field);
    expect((await ask('GET', '/issues?state=all')).body.total).toBe(7);
  });

  test('a change must name at least one known field', async () => {
    expect((await ask('PATCH', '/issues/7', {})).body.message).toContain('at least one of title');
    expect((await ask('PATCH', '/issues/7', { state: 'gone' })).status).toBe(400);
    expect((await ask('PATCH', '/issues/70', { state: 'closed' })).status).toBe(404);
    expect((await ask('PATCH', '/issues/7', { state: 'closed' })).status).toBe(200);
  });

  test('comments are read and written on existing issues only', async () => {
    expect((await ask('GET', '/issues/1/comments')).body).toMatchObject({ total: 2, page: 1 });
    expect((await ask('GET', '/issues/2/comments')).body.total).toBe(0);
    const made = await expectStatus(201, ask('POST', '/issues/1/comments', { text: 'I have the new table.' }));
    expect(made.body).toMatchObject({ issue: 1, author: 'agent', text: 'I have the new table.' });
    expect((await ask('GET', '/issues/1/comments')).body.total).toBe(3);
    expect((await ask('POST', '/issues/1/comments', { text: '' })).status).toBe(400);
    expect((await ask('POST', '/issues/70/comments', { text: 'x' })).status).toBe(404);
    expect((await ask('GET', '/issues/70/comments')).status).toBe(404);
  });

  test('the number of issues is limited, with the limit in the refusal', async () => {
    let last = await ask('POST', '/issues', { title: 'one' });
    for (let made = 8; made < 1_000; made++) last = await ask('POST', '/issues', { title: 'one more' });
    expect(last.status).toBe(201);
    const { status, body } = await ask('POST', '/issues', { title: 'too many' });
    expect([status, body.error]).toEqual([507, 'sandbox_full']);
    expect(body.message).toContain('at most 1000 issues');
    expect((await ask('DELETE', '/issues/1')).status).toBe(204);
    expect((await ask('POST', '/issues', { title: 'fits again' })).status).toBe(201);
  });
});

describe('mail', () => {
  test('the inbox is listed, and a message is read', async () => {
    expect((await ask('GET', '/mail')).body).toMatchObject({ total: 3 });
    expect((await ask('GET', '/mail?folder=sent')).body.total).toBe(1);
    expect((await ask('GET', '/mail?folder=all')).body.total).toBe(4);
    expect((await ask('GET', '/mail?folder=spam')).status).toBe(400);
    expect((await ask('GET', '/mail/msg_2')).body.subject).toBe('Charged twice');
    expect((await ask('GET', '/mail/msg_99')).status).toBe(404);
  });

  test.each([
    ['omar@customer.example', undefined],
    [['omar@customer.example', 'lena@customer.example'], ['audit@shop.example']],
    [['omar@customer.example'], 'audit@shop.example'],
  ])('a message to %j, copied to %j, is sent', async (to, cc) => {
    const made = await ask('POST', '/mail', { to, cc, subject: 'Your refund', text: 'It is on its way.' });
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({ folder: 'sent', to: [to].flat(), cc: [cc ?? []].flat() });
    expect((await ask('GET', made.headers.get('location') ?? '')).body).toEqual(made.body);
    expect((await ask('GET', '/mail?folder=sent')).body.total).toBe(2);
  });

  test.each([
    [{ to: [] }, 'to'],
    [{ to: 'nobody' }, 'to'],
    [{ to: ['a@b.example', 7] }, 'to'],
    [{ to: { 0: 'a@b.example' } }, 'to'],
    [{ cc: 'x@y.example, z@y.example' }, 'cc'],
    [{ to: Array.from({ length: 51 }, (_, at) => `a${at}@b.example`) }, 'to'],
    [{ subject: 'Hello\r\nBcc: all@shop.example' }, 'subject'],
    [{ bcc: ['a@b.example'] }, 'bcc'],
    [{ text: 'x'.repeat(20_001) }, 'text'],
  ])('the message with %j is a 400 that names %s, and nothing is sent', async (part, field) => {
    const good = { to: ['omar@customer.example'], subject: 'Hello', text: 'Text' };
    const { body } = await expectStatus(400, ask('POST', '/mail', { ...good, ...part }));
    expect(body.fields.map((one) => one.field).join()).toContain(field);
    expect((await ask('GET', '/mail?folder=sent')).body.total).toBe(1);
  });

  test('a message can be deleted once', async () => {
    expect((await ask('DELETE', '/mail/msg_1')).status).toBe(204);
    expect((await ask('DELETE', '/mail/msg_1')).status).toBe(404);
    expect((await ask('GET', '/mail')).body.total).toBe(2);
  });
});

describe('payments and refunds', () => {
  test('payments contain their refunded amount', async () => {
    const { body } = await expectStatus(200, ask('GET', '/payments'));
    const lena = body.items.find((payment) => payment.id === 'pay_1003');
    expect(lena).toMatchObject({ amount: 34_500, refunded: 1_500, currency: 'EUR', status: 'partly_refunded' });
  });

  test('a refund may name its currency, which must be that of the payment', async () => {
    const refund = (currency: string) =>
      ask('POST', '/refunds', { payment: 'pay_1001', amount: 1, currency, reason: 'Damaged' });
    expect((await refund('USD')).body).toMatchObject({ error: 'currency_differs' });
    expect((await refund('EUR')).status).toBe(201);
  });

  test('a refund is created, listed and read', async () => {
    const made = await ask('POST', '/refunds', { payment: 'pay_1002', amount: 12_900, reason: 'Charged twice' });
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({ id: 'ref_2', payment: 'pay_1002', amount: 12_900, currency: 'EUR' });
    expect((await ask('GET', made.headers.get('location') ?? '')).body).toEqual(made.body);
    expect((await ask('GET', '/refunds')).body).toMatchObject({ total: 2, items: [{ id: 'ref_2' }, { id: 'ref_1' }] });
    const { items } = (await ask('GET', '/payments')).body;
    expect(items[1]).toMatchObject({ id: 'pay_1002', status: 'refunded', refunded: 12_900 });
    expect((await ask('GET', '/refunds/ref_3')).status).toBe(404);
  });

  test('the sum of refunds never exceeds the payment, and the last cent can be refunded', async () => {
    const refund = (amount: number) => ask('POST', '/refunds', { payment: 'pay_1003', amount, reason: 'Wrong colour' });
    const { status, body } = await refund(33_001);
    expect([status, body.error]).toEqual([409, 'refund_exceeds_payment']);
    expect(body.message).toContain('33000 of 34500 cents left');
    expect((await refund(33_000)).status).toBe(201);
    expect((await refund(1)).status).toBe(409);
  });

  test('concurrent refunds cannot refund the same money twice', async () => {
    const refund = () => ask('POST', '/refunds', { payment: 'pay_1005', amount: 3_000, reason: 'Race' });
    const statuses = (await Promise.all(Array.from({ length: 10 }, refund))).map((answer) => answer.status);
    expect(statuses.filter((status) => status === 201)).toHaveLength(1);
    expect(statuses.filter((status) => status === 409)).toHaveLength(9);
  });

  test.each([
    [{ amount: 0 }, 'amount'],
    [{ amount: -5 }, 'amount'],
    [{ amount: 1.5 }, 'amount'],
    [{ amount: '100' }, 'amount'],
    [{ payment: 'pay_x' }, 'payment'],
    [{ reason: ' a ' }, 'reason'],
    [{ currency: 5 }, 'currency'],
    [{ colour: 'red' }, 'colour'],
  ])('the refund with %j is a 400 that names %s', async (part, field) => {
    const given = { payment: 'pay_1001', amount: 100, reason: 'Damaged', ...part };
    const { status, body } = await ask('POST', '/refunds', given);
    expect([status, body.error]).toEqual([400, 'invalid_body']);
    expect(body.message).toContain(field);
    expect((await ask('GET', '/refunds')).body.total).toBe(1);
  });

  test('1e999 is a 400, and an unknown payment a 404', async () => {
    expect((await ask('POST', '/refunds', '{"payment":"pay_1001","amount":1e999,"reason":"all"}')).status).toBe(400);
    expect((await ask('POST', '/refunds', { payment: 'pay_9', amount: 1, reason: 'none' })).status).toBe(404);
  });
});

describe('paths, methods and bodies', () => {
  test.each(['/', '/issue', '/issues/', '/issues/1/', '/Issues', '/mail/msg_1/x', '/issues/1/comments/1', '/%69ssues'])(
    'the path %s is a 404',
    async (path) => {
      const { status, body } = await ask('GET', path);
      expect([status, body.error]).toEqual([404, 'not_found']);
    },
  );

  test.each([
    ['PUT', '/issues', 'GET, HEAD, POST'],
    ['DELETE', '/issues', 'GET, HEAD, POST'],
    ['POST', '/issues/1', 'GET, HEAD, PATCH, DELETE'],
    ['DELETE', '/issues/1/comments', 'GET, HEAD, POST'],
    ['PATCH', '/mail', 'GET, HEAD, POST'],
    ['PUT', '/mail/msg_1', 'GET, HEAD, DELETE'],
    ['POST', '/payments', 'GET, HEAD'],
    ['DELETE', '/refunds', 'GET, HEAD, POST'],
    ['DELETE', '/refunds/ref_1', 'GET, HEAD'],
  ])('%s %s is a 405 that allows %s', async (method, path, allow) => {
    const { status, headers, body } = await ask(method, path);
    expect([status, body.error, headers.get('allow')]).toEqual([405, 'method_not_allowed', allow]);
  });

  test('HEAD is answered like GET, without the content', async () => {
    const { status, headers, body } = await ask('HEAD', '/issues');
    expect([status, body]).toEqual([200, null]);
    expect(Number(headers.get('content-length'))).toBeGreaterThan(100);
  });

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/jsonx',
    'application/json; charset=latin1',
  ])('the content type %s is a 415', async (type) => {
    const { status, body } = await ask('POST', '/issues', { title: 'x' }, { 'content-type': type });
    expect([status, body.error]).toEqual([415, 'unsupported_media_type']);
  });

  test('a compressed body is a 415, and a charset of UTF-8 is accepted', async () => {
    const zipped = await ask('POST', '/issues', { title: 'x' }, { 'content-encoding': 'gzip' });
    expect([zipped.status, zipped.body.error]).toEqual([415, 'unsupported_content_encoding']);
    const type = { 'content-type': 'application/json; charset=UTF-8' };
    expect((await ask('POST', '/issues', { title: 'x' }, type)).status).toBe(201);
  });

  test.each(['', '{', '{"title":"x",}', "{'title':'x'}"])('the body %j is a 400 invalid_json', async (given) => {
    const { status, body } = await ask('POST', '/issues', given);
    expect([status, body.error]).toEqual([400, 'invalid_json']);
  });

  test('bytes that are not UTF-8 are a 400', async () => {
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
    const body = Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]);
    const answer = await fetch(`${sandbox.url}/issues`, { method: 'POST', headers, body });
    expect([answer.status, ((await answer.json()) as { error: string }).error]).toEqual([400, 'invalid_json']);
  });

  test('a body may have 64 KiB; one byte more is a 413, declared or chunked', async () => {
    const sized = (bytes: number) => `{"title":"x"}${' '.repeat(bytes - 13)}`;
    expect((await ask('POST', '/issues', sized(65_536))).status).toBe(201);
    const declared = await ask('POST', '/issues', sized(65_537));
    expect([declared.status, declared.body.error]).toEqual([413, 'body_too_large']);
    expect(await chunked(sized(65_536))).toBe(201);
    expect(await chunked(sized(65_537))).toBe(413);
  });

  test('connections are kept open between requests', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ports = new Set<number | undefined>();
    for (let at = 0; at < 3; at++) {
      const port = await new Promise<number | undefined>((resolve, reject) => {
        const headers = { authorization: `Bearer ${TOKEN}` };
        httpRequest(`${sandbox.url}/mail`, { agent, headers }, (answer) => {
          const from = answer.socket.localPort;
          answer.resume().once('end', () => resolve(from));
        })
          .once('error', reject)
          .end();
      });
      ports.add(port);
    }
    agent.destroy();
    expect(ports.size).toBe(1);
  });

  test('a client that disconnects in the middle of a body does no harm', async () => {
    const { port, hostname } = new URL(sandbox.url);
    await new Promise<void>((resolve) => {
      const socket = connect(Number(port), hostname, () => {
        const head = `POST /issues HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${TOKEN}\r\n`;
        socket.end(`${head}content-type: application/json\r\ncontent-length: 50\r\n\r\n{"title":`);
      });
      socket.once('error', () => resolve()).once('close', () => resolve());
      socket.resume();
    });
    expect((await ask('GET', '/issues?state=all')).body.total).toBe(7);
  });

  test('any JSON is answered with 201, or a 400 with a reason', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom('/issues', '/mail', '/refunds'), fc.jsonValue(), async (path, value) => {
        const { status, body } = await ask('POST', path, JSON.stringify(value));
        expect([201, 400]).toContain(status);
        if (status === 400) expect(body.message.length).toBeGreaterThan(10);
      }),
      { numRuns: 150 },
    );
  });

  function chunked(body: string): Promise<number | undefined> {
    return new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
      const outgoing = httpRequest(`${sandbox.url}/issues`, { method: 'POST', headers }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      });
      outgoing.once('error', reject);
      outgoing.write(body.slice(0, 40_000));
      outgoing.end(body.slice(40_000));
    });
  }
});

describe('the manifest and the policy', () => {
  const rules: Record<string, string[]> = SANDBOX_MANIFEST.scopes;

  test('every operation of the manifest is a route of the server, and every route is covered by one operation', async () => {
    const ids: Record<string, string> = { issues: '1', mail: 'msg_1', refunds: 'ref_1' };
    const seen = new Set<string>();
    for (const rule of Object.values(rules).flat()) {
      expect(seen.has(rule)).toBe(false);
      seen.add(rule);
      const [method = '', path = ''] = rule.split(' ');
      const real = path.replace('*', ids[path.split('/')[1] ?? ''] ?? '');
      const { status } = await ask(method, real, method === 'POST' || method === 'PATCH' ? {} : undefined);
      // An empty body fits no route: 400 shows that the route exists, and 204 or 200 that it answered.
      expect([200, 204, 400]).toContain(status);
    }
    expect(seen.size).toBe(15);
  });

  test('reads are allowed, mail and refunds are held, deletes are denied: each scope has an effect', () => {
    const effects = Object.entries(rules).map(([scope, operations]) => {
      const matched = SANDBOX_POLICY.rules.filter((rule) => {
        const { scopes, methods } = rule as { scopes?: string[]; methods?: string[] };
        const inScopes = scopes?.some(
          (pattern) => scope === pattern || (pattern === 'sandbox:*.read' && scope.endsWith('.read')),
        );
        return inScopes || operations.every((operation) => methods?.includes(operation.split(' ')[0] ?? ''));
      });
      return [scope, matched.map((rule) => rule.effect).join()];
    });
    expect(Object.fromEntries(effects)).toEqual({
      'sandbox:issues.read': 'allow',
      'sandbox:issues.write': 'allow',
      'sandbox:issues.delete': 'deny',
      'sandbox:mail.read': 'allow',
      'sandbox:mail.send': 'require_approval',
      'sandbox:mail.delete': 'deny',
      'sandbox:payments.read': 'allow',
      'sandbox:refunds.create': 'require_approval',
    });
  });
});

describe('start and stop', () => {
  test('a taken port is an error, close is idempotent, and then the port is free', async () => {
    const port = Number(new URL(sandbox.url).port);
    await expect(startSandbox({ token: TOKEN, port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await sandbox.close();
    await sandbox.close();
    const again = await startSandbox({ token: TOKEN, port });
    expect(again.url).toBe(sandbox.url);
    await again.close();
  });
});
