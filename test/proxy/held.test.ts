/**
 * A held call of a client without support for approvals: it waits, is refused with the link, and joins the held call when it is sent again.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { storedAnswer } from '../../broker/proxy/stored-result.ts';
import type { Answer } from '../world/agent.ts';
import { evidenceOf, withoutCalls } from '../world/evidence.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, CANARY, givenWorld, shared } from '../world/world.ts';
import { rawClient } from './raw-client.ts';

describe.each(ONE_STORE)(`held calls through /proxy on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent());
  const ask = rawClient(() => agent);
  let calls = 0;
  /** A write that no other test makes. */
  const write = (headers: Record<string, string> = {}, body = JSON.stringify({ n: calls })) =>
    ask('POST', '/proxy/demo-main/items', { body, headers: { 'x-svc-wait': '0', ...headers } });
  const fresh = () => {
    calls++;
    return JSON.stringify({ n: calls });
  };
  const made = (body: string) => world.upstream.seen.filter((one) => one.body === body).length;
  const idOf = (answer: Answer) => {
    expect(answer, answer.text).toMatchObject({ status: 403, body: { error: 'approval_pending' } });
    return answer.body.approval_id as string;
  };
  const pending = async (): Promise<string[]> =>
    (await organisation.pending()).map((one: { approval_id: string }) => one.approval_id);
  const deny = (id: string, note: string) => organisation.deny(id, { note });

  test.each([
    ['as UTF-8', Buffer.from('Grüße – 日本').toString('latin1'), 'Grüße – 日本'],
    ['as Latin-1, where it is no UTF-8', 'Gr\u00fc\u00dfe', 'Grüße'],
    ['of 2,048 characters', 'ü'.repeat(2_048), 'ü'.repeat(2_048)],
  ])('a held call shows the agent’s reason %s', async (_how, sent, shown) => {
    // With a string body Node encodes the head like the body.
    const body = Buffer.from(fresh());
    const headers = { 'x-svc-wait': '0', 'x-svc-reason': sent };
    const id = idOf(await ask('POST', '/proxy/demo-main/items', { body, headers }));
    expect((await organisation.ask('GET', `/owner/approvals/${id}`)).body.reason).toBe(shown);
    await deny(id, 'no');
  });

  test('a reason that is too long answers 400 with the limit', async () => {
    const { status, body } = await write({ 'x-svc-reason': 'x'.repeat(2_049) }, fresh());
    const detail = 'X-Svc-Reason: has 2049 characters; write at most 2048.';
    expect([status, body.detail]).toEqual([400, expect.stringContaining(detail)]);
  });

  test.each(['abc', '-1', '1.5', '', '121', '99999'])('a wait of "%s" answers 400 with advice', async (wait) => {
    const { status, body } = await write({ 'x-svc-wait': wait }, fresh());
    expect([status, body.detail]).toEqual([400, expect.stringContaining('X-Svc-Wait: write a whole number')]);
  });

  test('a held call is refused with the link, and an equal request gets its result after approval', async () => {
    const body = fresh();
    const refused = await write({}, body);
    const id = idOf(refused);
    expect(refused.body).toMatchObject({
      approval_url: `${world.running.baseUrl}/approve/${id}`,
      detail: expect.stringContaining(`/approve/${id}`),
    });
    expect(Object.fromEntries(refused.headers)).toMatchObject({
      'x-should-retry': 'false',
      'stripe-should-retry': 'false',
      'retry-after': '30',
    });
    expect(idOf(await write({ 'user-agent': 'another/2' }, body))).toBe(id);
    await organisation.approve(id);
    const answer = await write({}, body);
    expect(answer, answer.text).toMatchObject({ status: 200, body: { method: 'POST', body } });
    expect(made(body)).toBe(1);
    // The result was delivered: the next request is a new call.
    expect(idOf(await write({}, body))).not.toBe(id);
  });

  test.each([
    { 'content-type': 'application/merge-patch+json' },
    { 'content-type': 'application/strategic-merge-patch+json' },
    { 'content-type': 'application/json; charset=iso-8859-15' },
    { 'content-type': 'text/plain; charset=utf-7' },
    { 'content-type': 'application/octet-stream', 'content-encoding': 'zstd' },
  ])('the approver sees the media type of the body: %j', async (headers) => {
    const id = idOf(await write(headers, fresh()));
    const { request } = (await organisation.ask('GET', `/owner/approvals/${id}`)).body;
    expect(request.headers).toEqual(headers);
    await organisation.approve(id);
    expect(world.upstream.seen.at(-1)!.headers).toMatchObject(headers);
  });

  test('a waiting request gets the answer as soon as the call is approved', async () => {
    const body = fresh();
    const waiting = write({ 'x-svc-wait': '20', 'x-note': 'of the client' }, body);
    const id = idOf(await write({}, body));
    await organisation.approve(id);
    const answer = await waiting;
    expect(answer).toMatchObject({ status: 200, body: { body } });
    expect(answer.headers.get('x-svc-dropped-headers')).toBe('x-note');
    expect(made(body)).toBe(1);
  });

  test('an unknown outcome is reported to equal requests for ten minutes', async () => {
    const body = fresh();
    const id = idOf(await write({}, body));
    world.upstream.answer = (_, response) => response.destroy();
    await organisation.approve(id);
    world.upstream.answer = undefined;
    // A client that retries, or lost the first answer, does not make a second call.
    for (let attempt = 0; attempt < 3; attempt++) {
      const unknown = await write({}, body);
      expect(unknown, unknown.text).toMatchObject({
        status: 422,
        body: { error: 'executed_outcome_unknown', approval_id: id, audit_id: unknown.headers.get('x-svc-audit-id') },
      });
      expect(unknown.headers.get('x-svc-audit-id')).toMatch(/^[0-9a-f-]{36}$/);
      expect(unknown.headers.get('x-should-retry')).toBe('false');
      expect(unknown.body.detail).toContain('may have been made');
    }
    expect(made(body)).toBe(1);
    world.clock.skewMs += 10 * 60_000 + 1_000;
    expect(idOf(await write({}, body))).not.toBe(id);
    world.clock.skewMs = 0;
  });

  test('an approved call that was not made is reported once: the next equal request is a new call', async () => {
    const body = fresh();
    const by = await organisation.agent();
    const send = () => rawClient(() => by)('POST', '/proxy/demo-main/items', { body, headers: { 'x-svc-wait': '0' } });
    const id = idOf(await send());
    const policy = await organisation.policy([{ effect: 'deny', endpoints: ['/items'] }]);
    await organisation.ask('POST', `/owner/agents/${by.agentId}/policy`, { policy });
    await organisation.approve(id);
    const failed = await send();
    expect(failed, failed.text).toMatchObject({ status: 422, body: { error: 'approval_failed', approval_id: id } });
    expect(failed.body.detail).toMatch(/not made: denied_by_policy: .* Send it again to ask a person again\.$/);
    expect(made(body)).toBe(0);
    expect(await send()).toMatchObject({ status: 403, body: { error: 'denied_by_policy' } });
  });

  test('while an approved call is in flight, that is reported, and an equal request gets the answer afterwards', async () => {
    const body = fresh();
    const id = idOf(await write({}, body));
    let finish = () => {};
    const asked = new Promise<void>((resolve) => {
      world.upstream.answer = (_, response) => {
        finish = () => void response.end('{"done":true}');
        resolve();
      };
    });
    const approved = organisation.approve(id);
    await asked;
    const meanwhile = await write({}, body);
    expect(meanwhile, meanwhile.text).toMatchObject({
      status: 409,
      body: { error: 'approval_in_progress', approval_id: id, detail: expect.stringContaining('approved this call') },
    });
    expect(meanwhile.body.detail).not.toContain('Nothing was sent');
    expect(Object.fromEntries(meanwhile.headers)).toMatchObject({ 'retry-after': '5' });
    // Clients that retry by themselves get the result.
    expect(meanwhile.headers.has('x-should-retry')).toBe(false);
    finish();
    await approved;
    world.upstream.answer = undefined;
    expect(await write({ 'x-svc-wait': '20' }, body)).toMatchObject({ status: 200, body: { done: true } });
    expect(made(body)).toBe(1);
  });

  test.each([
    ['too long to be kept', 'x'.repeat(300 * 1024), 'text/plain', 'too large to be stored'],
    [
      'withheld',
      Buffer.concat([Buffer.from([0x89, 0, 255]), Buffer.from(CANARY)]),
      'image/png',
      'upstream_response_blocked',
    ],
  ])('that an answer was %s is reported for ten minutes after it was first reported', async (_, answer, type, why) => {
    const body = fresh();
    const id = idOf(await write({}, body));
    world.upstream.answer = (_request, response) => response.writeHead(201, { 'content-type': type }).end(answer);
    // A standing approval would let the next call pass without an approver.
    const approved = await organisation.approve(id, {
      standing: { count: 3, for_seconds: 30 * 24 * 3600, free: [] },
    });
    expect(approved.status, approved.text).toBe(200);
    const { skewMs } = world.clock;
    for (let attempt = 0; attempt < 3; attempt++) {
      // An agent may send the request long after the approval.
      world.clock.skewMs += attempt === 0 ? 60 * 60_000 : 4 * 60_000;
      const lost = await write({}, body);
      expect(lost, lost.text).toMatchObject({
        status: 422,
        body: { error: 'executed_result_not_kept', approval_id: id, audit_id: lost.headers.get('x-svc-audit-id') },
      });
      expect(lost.body.detail).toContain(why);
      expect(lost.headers.get('x-should-retry')).toBe('false');
    }
    expect(made(body)).toBe(1);
    world.clock.skewMs += 3 * 60_000;
    world.upstream.answer = undefined;
    expect((await write({}, body)).status).toBe(200);
    expect(made(body)).toBe(2);
    world.clock.skewMs = skewMs;
  });

  test('a denial is reported to equal requests for ten minutes', async () => {
    const body = fresh();
    const id = idOf(await write({}, body));
    await deny(id, 'not today');
    const denied = await write({}, body);
    expect(denied).toMatchObject({ status: 403, body: { error: 'approval_denied', approval_id: id } });
    expect(denied.body.detail).toContain('not today');
    world.clock.skewMs += 10 * 60_000 + 1_000;
    expect(idOf(await write({}, body))).not.toBe(id);
    world.clock.skewMs = 0;
    expect(made(body)).toBe(0);
  });

  test('concurrent equal requests are one call, and with different keys several', async () => {
    const body = fresh();
    const same = await Promise.all([write({}, body), write({}, body), write({}, body)]);
    expect(new Set(same.map(idOf)).size).toBe(1);
    const other = fresh();
    const before = await pending();
    const first = write({ 'x-svc-wait': '20', 'idempotency-key': 'one' }, other);
    let mine: string | undefined;
    await expect
      .poll(async () => {
        mine = (await pending()).find((id) => !before.includes(id));
        return mine;
      })
      .toBeDefined();
    const separate = idOf(await write({ 'idempotency-key': 'two' }, other));
    expect(separate).not.toBe(mine);
    await organisation.approve(separate);
    expect(await write({ 'idempotency-key': 'two' }, other)).toMatchObject({ status: 200 });
    expect(made(other)).toBe(1);
    // The first request still waits, for its own call.
    await organisation.approve(mine ?? '');
    expect((await first).status).toBe(200);
    expect(made(other)).toBe(2);
  });

  test('a request with another key joins a call for which no request waits any more', async () => {
    const body = fresh();
    const id = idOf(await write({ 'idempotency-key': 'one' }, body));
    expect(idOf(await write({ 'idempotency-key': 'two' }, body))).toBe(id);
  });

  test('the same bytes for another range of an upload do not join', async () => {
    await organisation.platform({ id: 'uploads', manifest: { client_headers: ['content-range'] } });
    const uploader = await organisation.agent({ grants: { uploads: { scopeList: ['demo:write'] } } });
    const part = (range: string) =>
      rawClient(() => uploader)('POST', '/proxy/uploads-main/items', {
        body: '{"zeros":0}',
        headers: { 'x-svc-wait': '0', 'content-range': range },
      });
    const first = idOf(await part('bytes 0-10/22'));
    expect(idOf(await part('bytes 0-10/22'))).toBe(first);
    const second = idOf(await part('bytes 11-21/22'));
    expect(second).not.toBe(first);
    await organisation.approve(second);
    expect((await part('bytes 11-21/22')).status).toBe(200);
    expect(world.upstream.seen.at(-1)!.headers['content-range']).toBe('bytes 11-21/22');
  });

  test('the same request to another platform does not join', async () => {
    await organisation.platform({ id: 'twin' });
    const caller = await organisation.agent({ grants: { demo: {}, twin: {} } });
    const body = fresh();
    const via = (connection: string) =>
      rawClient(() => caller)('POST', `/proxy/${connection}/items`, { body, headers: { 'x-svc-wait': '0' } });
    const first = idOf(await via('demo-main'));
    expect(idOf(await via('demo-main'))).toBe(first);
    expect(idOf(await via('twin-main'))).not.toBe(first);
    await organisation.approve(first);
    expect(idOf(await via('twin-main'))).not.toBe(first);
    expect((await via('demo-main')).status).toBe(200);
  });

  test('equal parts with another boundary join, other parts do not', async () => {
    const send = (boundary: string, title: string) => {
      const part = (name: string, value: string) =>
        `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
      const body = `${part('title', title)}${part('n', '1')}--${boundary}--\r\n`;
      return write({ 'content-type': `multipart/form-data; boundary=${boundary}` }, body);
    };
    const id = idOf(await send('----one7f3a', 'report'));
    expect(idOf(await send('----two9c1b', 'report'))).toBe(id);
    expect(idOf(await send('----one7f3a', 'another'))).not.toBe(id);
    await organisation.approve(id);
    expect(await withoutCalls(world, () => send('----three', 'report'))).toMatchObject({ status: 200 });
    // The call was made when it was approved, with the bytes that were shown.
    const sent = world.upstream.seen.filter(({ body }) => body.includes('report'));
    expect(sent.map(({ body }) => body.includes('----one7f3a'))).toEqual([true]);
  });

  describe('a multipart body whose text contains the delimiter of another', () => {
    const part = (name: string, value: string) => `Content-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
    const send = (boundary: string, ...parts: string[]) =>
      write(
        { 'content-type': `multipart/form-data; boundary=${boundary}` },
        `${parts.map((one) => `--${boundary}\r\n${one}`).join('')}--${boundary}--\r\n`,
      );

    test('joins with another boundary up to 200 parts, but not beyond, because each costs a hash before the decision', async () => {
      for (const [many, joins] of [
        [200, true],
        [201, false],
      ] as const) {
        const parts = Array.from({ length: many }, (_, n) => part(`n${many}`, String(n)));
        const [one, other] = [await send('one', ...parts), await send('other', ...parts)];
        expect([one.status, other.status]).toEqual([403, 403]);
        expect(other.body.approval_id === one.body.approval_id, `${many} parts`).toBe(joins);
      }
    });

    test('does not join when the boundary is also text of a value', async () => {
      const id = idOf(await send('0', part('amount', '1')));
      expect(idOf(await send('0', part('amount', '1000')))).not.toBe(id);
      expect(idOf(await send('1', part('amount', '1--0')))).toBe(idOf(await send('2', part('amount', '1--0'))));
      expect(idOf(await send('0', part('amount', '1--0')))).not.toBe(idOf(await send('1', part('amount', '1--1'))));
    });

    test('does not join when one part looks like two', async () => {
      const [comment, amount] = [part('comment', 'hi'), part('amount', '1000')];
      const one = idOf(await send('----one', `${comment}--\r\n${amount}`));
      expect(idOf(await send('----two', comment, amount))).not.toBe(one);
    });

    test('joins with the line endings of Python, and does not when readers may take another boundary', async () => {
      const mail = (boundary: string, type = `multipart/related; boundary="${boundary}"`) =>
        write({ 'content-type': type }, `--${boundary}\nMIME-Version: 1.0\n\nsame\n--${boundary}--`);
      expect(idOf(await mail('==1=='))).toBe(idOf(await mail('==2==')));
      const twice = (boundary: string) => mail(boundary, `multipart/related; boundary="${boundary}"; boundary=b`);
      expect(idOf(await twice('==1=='))).not.toBe(idOf(await twice('==2==')));
    });
  });

  test('a request with another key does not join while any request still waits, even if one has left', async () => {
    const body = fresh();
    const first = write({ 'x-svc-wait': '1', 'idempotency-key': 'k1' }, body);
    await expect.poll(pending).not.toEqual([]);
    const second = write({ 'x-svc-wait': '20', 'idempotency-key': 'k1' }, body);
    await pause(200);
    const id = idOf(await first);
    const other = await write({ 'x-svc-wait': '0', 'idempotency-key': 'k2' }, body);
    expect(idOf(other)).not.toBe(id);
    await organisation.approve(id);
    expect((await second).status).toBe(200);
    await deny(idOf(other), 'no');
    expect(made(body)).toBe(1);
  });

  test('an unknown outcome is reported for ten minutes after it was first reported, however long the call took', async () => {
    const body = fresh();
    const id = idOf(await write({ 'x-svc-wait': '0' }, body));
    const { skewMs } = world.clock;
    world.upstream.answer = (_, response) => {
      world.clock.skewMs += 11 * 60_000;
      response.destroy();
    };
    await organisation.approve(id);
    world.upstream.answer = undefined;
    const again = await write({ 'x-svc-wait': '0' }, body);
    expect([again.status, again.body.error, again.body.approval_id]).toEqual([422, 'executed_outcome_unknown', id]);
    world.clock.skewMs += 11 * 60_000;
    expect(idOf(await write({ 'x-svc-wait': '0' }, body))).not.toBe(id);
    world.clock.skewMs = skewMs;
  });

  test('a held read names where its result will be, because a repeated read would be a new call', async () => {
    const reader = await organisation.agent({ rules: [{ effect: 'require_approval' }] });
    const read = await rawClient(() => reader)('GET', '/proxy/demo-main/items', { headers: { 'x-svc-wait': '0' } });
    const id = idOf(read);
    expect(read.body.detail).toContain(`The answer will be at ${reader.baseUrl}/v1/approvals/${id}`);
    expect(read.body.detail).not.toContain('Send the identical request');
    await organisation.approve(id);
    await expect.poll(async () => (await reader.get(`/v1/approvals/${id}`)).body.result?.status).toBe(200);
  });

  test('reads never join', async () => {
    const reader = await organisation.agent({ rules: [{ effect: 'require_approval' }] });
    const read = (method: string) =>
      rawClient(() => reader)(method, '/proxy/demo-main/items', { headers: { 'x-svc-wait': '0' } });
    const [first, second] = [idOf(await read('GET')), idOf(await read('GET'))];
    expect(second).not.toBe(first);
    await organisation.approve(first);
    expect(idOf(await read('GET'))).not.toBe(first);
  });

  describe('waiting requests', () => {
    const waiter = async () => {
      const one = await organisation.agent();
      const send = rawClient(() => one);
      return (body: string, wait = '20') =>
        send('POST', '/proxy/demo-main/items', { body, headers: { 'x-svc-wait': wait } });
    };
    const quickly = async (asking: Promise<Answer>) => {
      const late = new Promise<'waits'>((resolve) => setTimeout(resolve, 6_000, 'waits').unref());
      return await Promise.race([asking, late]);
    };

    test('are limited to four per call: a fifth is answered immediately', async () => {
      const send = await waiter();
      const body = fresh();
      const id = idOf(await send(body, '0'));
      const waiting = Array.from({ length: 4 }, () => send(body));
      const one = await Promise.race([...waiting, new Promise((resolve) => setTimeout(resolve, 500, 'all wait'))]);
      expect(one).toBe('all wait');
      const fifth = await quickly(send(body));
      expect(fifth).toMatchObject({ status: 403, body: { approval_id: id } });
      await organisation.approve(id);
      for (const answer of await Promise.all(waiting)) expect(answer.status, answer.text).toBe(200);
      expect(made(body)).toBe(1);
    });

    test('are limited to a hundred per agent: one more is answered immediately', async () => {
      const send = await waiter();
      const bodies = Array.from({ length: 25 }, fresh);
      const ids = await Promise.all(bodies.map(async (body) => idOf(await send(body, '0'))));
      const waiting = bodies.flatMap((body) => Array.from({ length: 4 }, () => send(body, '60')));
      const more = fresh();
      // It waits while there is a slot, so it is retried until all the others wait.
      const waitsFor = async (seconds: number) => {
        const begun = performance.now();
        expect(await send(more, String(seconds))).toMatchObject({ status: 403, body: { error: 'approval_pending' } });
        return performance.now() - begun;
      };
      await expect.poll(() => waitsFor(1), { timeout: 20_000 }).toBeLessThan(900);
      expect(await waitsFor(30)).toBeLessThan(20_000);
      await Promise.all(ids.map((id) => deny(id, 'no')));
      for (const answer of await Promise.all(waiting)) expect(answer.body.error).toBe('approval_denied');
    });
  });

  test('the exact bytes are held with their media type, and an answer that is not JSON is returned unchanged', async () => {
    const body = Buffer.from([0, 1, 2, 250, 251, calls++ % 256]);
    const send = () =>
      ask('POST', '/proxy/demo-main/items', { body, headers: { 'x-svc-wait': '0', 'content-type': 'image/x-icon' } });
    const id = idOf(await send());
    let sent: { type: string | undefined; bytes: string } | undefined;
    world.upstream.answer = (request, response, text) => {
      sent = { type: request.headers['content-type'], bytes: text };
      response.writeHead(201, { 'content-type': 'text/csv', etag: '"v1"' });
      response.end('a,b\n1,2\n');
    };
    await organisation.approve(id);
    const answer = await send();
    world.upstream.answer = undefined;
    expect(sent).toEqual({ type: 'image/x-icon', bytes: body.toString('utf8') });
    expect(answer).toMatchObject({ status: 201, text: 'a,b\n1,2\n' });
    expect(answer.headers.get('content-type')).toBe('text/csv');
    expect(answer.headers.get('etag')).toBe('"v1"');
    expect(answer.headers.get('content-security-policy')).toContain('sandbox');
  });

  test.each([
    ['a file', 'POST', '/repos/acme/app/releases/1/assets', 'application/octet-stream', 'bytes'],
    ['a text of a type that has no members', 'POST', '/repos/acme/app/releases/1/assets', 'text/plain', 'a: b'],
    ['a list', 'PUT', '/repos/acme/app/topics', 'application/json', '["a","b"]'],
  ])('%s that is allowed by a grant with repos is sent after approval', async (_what, method, path, type, body) => {
    const scopes = { 'codehost:any': [`${method} ${path}`] };
    const bodies = { [`${method} ${path}`]: type === 'application/json' ? ['list'] : ['bytes', 'text'] };
    const id = `codehost${calls++}`;
    await organisation.platform({ id, manifest: { scopes, bodies } });
    const constraints = JSON.stringify({ repos: ['acme/app'] });
    const rules = [{ effect: 'require_approval' }];
    const limited = await organisation.agent({
      rules,
      grants: { [id]: { scopeList: Object.keys(scopes), constraints } },
    });
    const headers = { 'x-svc-wait': '0', 'content-type': type };
    const send = () => rawClient(() => limited)(method, `/proxy/${id}-main${path}`, { body, headers });
    await organisation.approve(idOf(await send()));
    expect(await send()).toMatchObject({ status: 200, body: { method, body } });
  });

  test('a body that is too large to be stored cannot be held', async () => {
    const answer = await ask('POST', '/proxy/demo-main/items', { body: JSON.stringify({ a: 'x'.repeat(1_100_000) }) });
    expect(answer).toMatchObject({ status: 403, body: { error: 'approval_required_unsupported' } });
  });

  describe("the answer is the platform's own, as if the call had not been held", () => {
    const JSON_TYPE = { 'content-type': 'application/json' };
    afterEach(() => {
      world.upstream.answer = undefined;
    });
    const answering = (status: number, headers: Record<string, string>, body: string | Buffer) => {
      world.upstream.answer = (_request, response) => {
        response.writeHead(status, headers);
        response.end(body);
      };
    };
    /** The bytes and headers of an answer to a call that was held or, under other rules, was not. */
    const answered = async (rules: readonly unknown[], isHeld: boolean) => {
      const client = await organisation.agent({ rules });
      const send = async () => {
        const headers = { authorization: `Bearer ${client.token()}`, 'x-svc-wait': '0' };
        const response = await fetch(`${client.baseUrl}/proxy/demo-main/items`, {
          method: 'POST',
          body: '{"n":1}',
          redirect: 'manual',
          headers: { ...headers, ...JSON_TYPE },
        });
        return { response, body: Buffer.from(await response.arrayBuffer()).toString('latin1') };
      };
      let got = await send();
      const id = got.response.headers.get('x-svc-approval-id') ?? '';
      if (isHeld) {
        await organisation.approve(id);
        got = await send();
      }
      const { response, body } = got;
      // An answer without a length that takes longer than 20 ms is streamed, with X-Accel-Buffering.
      const notItsOwn =
        /^(?:x-svc-|x-correlation-id|x-accel-buffering|ratelimit|date$|connection$|keep-alive$|content-length$|transfer-encoding$)/;
      const headers = Object.fromEntries([...response.headers].filter(([name]) => !notItsOwn.test(name)));
      const auditId = response.headers.get('x-svc-audit-id') ?? '';
      const maskedBy = response.headers.get('x-svc-masked');
      return { client, id, auditId, maskedBy, got: { status: response.status, headers, body } };
    };
    const HOLD = [{ effect: 'require_approval' }];
    const bothWays = async () => {
      const held = await answered(HOLD, true);
      expect(held.got).toEqual((await answered(ALLOW_ALL, false)).got);
      return held;
    };

    test.each<[string, number, Record<string, string>, string | Buffer]>([
      ['a text without a type', 200, {}, 'OK'],
      ['malformed JSON', 200, JSON_TYPE, 'not json'],
      ['lines of JSON', 200, JSON_TYPE, '{"a":1}\n{"a":2}\n'],
      ['JSON, with its parameters', 200, { 'content-type': 'application/json; charset=utf-8' }, '{"a": 1.10}'],
      ['null', 200, JSON_TYPE, 'null'],
      ['a string of JSON', 200, JSON_TYPE, '"x"'],
      [
        'a text in another charset',
        200,
        { 'content-type': 'text/plain; charset=iso-8859-1' },
        Buffer.from('gr\u00fcn', 'latin1'),
      ],
      ['a text that is no UTF-8', 200, { 'content-type': 'text/csv' }, Buffer.from('gr\u00fcn;1', 'latin1')],
      ['a text with a byte order mark', 200, { 'content-type': 'text/csv' }, '\ufeffa;b'],
      ['bytes', 200, { 'content-type': 'image/png' }, Buffer.from([0x89, 0, 0xff])],
      ['nothing', 204, { 'x-kept': '1' }, ''],
      [
        'a created resource',
        201,
        { ...JSON_TYPE, location: '/v1/items/7', etag: '"e"', 'x-amz-version-id': 'v7' },
        '{"id":7}',
      ],
      ['a redirect', 303, { location: '/v1/items/7?page=2', 'set-cookie': 'a=b' }, ''],
      ['a compressed answer', 200, { ...JSON_TYPE, 'content-encoding': 'gzip' }, gzipSync('{"a":1}')],
    ])('%s', async (_what, status, headers, body) => {
      answering(status, headers, body);
      const { got } = await bothWays();
      expect(got.status).toBe(status);
    });

    test('the credential is redacted in its body and in its headers', async () => {
      const headers = { ...JSON_TYPE, 'x-clean': '1', 'x-echo': CANARY };
      answering(200, headers, JSON.stringify({ echo: CANARY }));
      const { got, client, auditId } = await answered(HOLD, true);
      expect(got).toMatchObject({ status: 200, body: '{"echo":"[redacted]"}', headers: { 'x-clean': '1' } });
      expect(JSON.stringify(got)).not.toContain(CANARY);
      const { row } = await evidenceOf(world, client, auditId);
      expect(JSON.parse(row.flags ?? '{}')).toMatchObject({ redacted: true });
    });

    test('it is masked, without headers that reveal the original', async () => {
      const mask = [...HOLD, { name: 'no-mail', effect: 'mask', mask: { members: ['email'] } }];
      answering(200, { ...JSON_TYPE, etag: '"e"', 'x-kept': '1' }, '{"id":7,"email":"ann@acme.example"}');
      const { got, maskedBy } = await answered(mask, true);
      expect(got).toMatchObject({ status: 200, body: '{"id":7,"email":"[masked]"}', headers: { 'x-kept': '1' } });
      expect(got.headers).not.toHaveProperty('etag');
      expect(maskedBy).toBe('no-mail');
    });

    test('the API returns it like any result', async () => {
      answering(201, { ...JSON_TYPE, location: '/v1/items/7', etag: '"e"' }, '{"id":7}');
      const { client, id } = await answered(HOLD, true);
      const { result } = (await client.get(`/v1/approvals/${id}`)).body;
      expect(result).toEqual({ status: 201, data: { id: 7 }, headers: { etag: '"e"' } });
    });

    test('a result stored by an earlier release is returned too', () => {
      const stored = (result: object) => {
        const { status, headers, body } = storedAnswer(JSON.stringify(result)) ?? {};
        return [status, headers, body?.toString()];
      };
      const headers = { etag: '"e"' };
      expect(stored({ status: 200, data: { a: 1 }, headers })).toEqual([200, { ...headers, ...JSON_TYPE }, '{"a":1}']);
      expect(stored({ status: 200, data: 'a;b', content_type: 'text/csv' })).toEqual([
        200,
        { 'content-type': 'text/csv' },
        'a;b',
      ]);
      expect(stored({ status: 204, data: null })).toEqual([204, {}, '']);
    });
  });

  test('a halted agent gets no results of calls approved before', async () => {
    const body = fresh();
    const id = idOf(await write({}, body));
    await organisation.approve(id);
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/suspend`, {});
    expect(await write({}, body)).toMatchObject({ status: 403, body: { error: 'agent_halted' } });
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/resume`, {});
    expect(await write({}, body)).toMatchObject({ status: 200 });
  });

  test('after a restart an equal request still gets the result', async () => {
    const body = fresh();
    const id = idOf(await write({}, body));
    await organisation.approve(id);
    await world.restart();
    expect(await write({}, body)).toMatchObject({ status: 200 });
    expect(made(body)).toBe(1);
  });
});
