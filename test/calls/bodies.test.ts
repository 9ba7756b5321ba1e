/** Bodies other than a JSON object, for operations that accept them: through POST /v1/actions and through /proxy. */
import { createHash } from 'node:crypto';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { rawClient } from '../proxy/raw-client.ts';
import { type Answer, expectStatus, type TestAgent } from '../world/agent.ts';
import { auditIdOf, evidenceOf, withoutCalls } from '../world/evidence.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, givenWorld, shared } from '../world/world.ts';

const SCOPES = { 'demo:write': ['POST /**', 'PUT /**', 'DELETE /**'] };
const BODIES = {
  'PUT /labels/*': ['json', 'list'],
  'PUT /any/**': ['text', 'bytes'],
  'POST /any/forms': 'form',
  'POST /markdown': 'text',
  'POST /files': 'multipart',
  'PUT /only-lists/**': 'list',
  'DELETE /labels/*': 'list',
};
const PATCH = 'application/json-patch+json';
const BYTES = Buffer.from([0, 1, 2, 0xff, 0xfe, 0x80]);

describe.each(ONE_STORE)(`bodies of operations, on %s${postgresNote}`, (store) => {
  let agent: TestAgent;
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ manifest: { scopes: SCOPES, bodies: BODIES } }));
  beforeAll(async () => {
    await organisation.platform({
      id: 'forms',
      manifest: { scopes: SCOPES, body: 'form', bodies: { 'POST /v2/**': 'json' } },
    });
    agent = await organisation.agent({ rules: ALLOW_ALL, grants: grants() });
  });
  beforeEach(() => world.forgive());
  const grants = () => ({ demo: { scopeList: ['demo:write'] }, forms: { scopeList: ['demo:write'] } });
  const callOf = (method: string, endpoint: string, data: unknown, more: Record<string, unknown> = {}) => ({
    platform: 'demo',
    method,
    endpoint,
    scope: 'demo:write',
    data,
    ...more,
  });
  const lastSeen = () => world.upstream.seen.at(-1);
  const typed = (type: string) => ({ headers: { 'Content-Type': type } });

  test.each<[string, ReturnType<typeof callOf>, string, string]>([
    ['a list', callOf('PUT', '/labels/1', ['a', { b: [1.5] }]), 'application/json', '["a",{"b":[1.5]}]'],
    ['an empty list', callOf('DELETE', '/labels/1', []), 'application/json', '[]'],
    ['a list of changes', callOf('PUT', '/labels/1', [{ op: 'test' }], typed(PATCH)), PATCH, '[{"op":"test"}]'],
    [
      'an object of a type',
      callOf('PUT', '/labels/1', { a: 1 }, typed('application/merge-patch+json')),
      'application/merge-patch+json',
      '{"a":1}',
    ],
    ['an object beside', callOf('PUT', '/labels/1', { a: 1 }), 'application/json', '{"a":1}'],
    ['a text', callOf('POST', '/markdown', '# Tïtle\n'), 'text/plain; charset=utf-8', '# Tïtle\n'],
    ['a text of a type', callOf('POST', '/markdown', '# x', typed('text/x-markdown')), 'text/x-markdown', '# x'],
    ['no text', callOf('POST', '/markdown', ''), 'text/plain; charset=utf-8', ''],
    [
      'a form, by operation',
      callOf('POST', '/any/forms', { a: 'b c' }),
      'application/x-www-form-urlencoded',
      'a=b%20c',
    ],
    [
      'a form elsewhere',
      { ...callOf('POST', '/v1/x', { a: 1 }), platform: 'forms' },
      'application/x-www-form-urlencoded',
      'a=1',
    ],
    ['JSON, by operation', { ...callOf('POST', '/v2/x', { a: 1 }), platform: 'forms' }, 'application/json', '{"a":1}'],
  ])('%s is sent unchanged', async (_, call, type, body) => {
    const answer = await expectStatus(200, agent.act(call));
    expect(answer.body._meta.dropped_headers).toBeUndefined();
    expect(lastSeen()).toMatchObject({ method: call.method, body });
    expect(lastSeen()?.headers['content-type']).toBe(type);
    await evidenceOf(world, agent, auditIdOf(answer));
  });

  test.each([
    ['of no type', {}, 'application/octet-stream'],
    ['of a type', typed('application/zip'), 'application/zip'],
  ])('bytes %s are sent decoded from base64', async (_, more, type) => {
    const call = callOf('PUT', '/any/file.bin', BYTES.toString('base64'), { encoding: 'base64', ...more });
    await expectStatus(200, agent.act(call));
    expect(lastSeen()?.headers).toMatchObject({ 'content-type': type, 'content-length': `${BYTES.length}` });
    // The platform's text shows bytes that are not UTF-8 as U+FFFD; the length proves the rest.
    expect(lastSeen()?.body).toBe(BYTES.toString('utf8'));
  });

  test('an object is sent as multipart with its files', async () => {
    const data = {
      purpose: 'assistants',
      n: 3,
      file: { filename: 'a "b".jsonl', data: '{"x":1}\n', content_type: 'application/jsonl' },
      'more[]': ['x', { filename: 'b.bin', data: BYTES.toString('base64'), encoding: 'base64' }],
    };
    const answer = await expectStatus(200, agent.act(callOf('POST', '/files', data, typed('application/json'))));
    expect(answer.body._meta.dropped_headers).toEqual(['content-type']);
    const seen = lastSeen();
    const sent = await new Response(seen?.body, {
      headers: { 'content-type': String(seen?.headers['content-type']) },
    }).formData();
    expect(sent.get('purpose')).toBe('assistants');
    expect(sent.get('n')).toBe('3');
    const file = sent.get('file') as File;
    expect([file.name, file.type, await file.text()]).toEqual(['a "b".jsonl', 'application/jsonl', '{"x":1}\n']);
    const [first, second] = sent.getAll('more[]') as [string, File];
    expect([first, second.name, second.type]).toEqual(['x', 'b.bin', 'application/octet-stream']);
  });

  test.each<[string, ReturnType<typeof callOf>, string]>([
    ['a list elsewhere', callOf('POST', '/elsewhere', []), 'data: must be an object'],
    ['a text elsewhere', callOf('POST', '/elsewhere', 'x'), 'data: must be an object'],
    ['a list on no platform', { ...callOf('POST', '/x', []), platform: 'none' }, 'data: must be an object'],
    ['another spelling', callOf('PUT', '/Labels/1', []), 'data: must be an object'],
    ['an object where a list belongs', callOf('PUT', '/only-lists/1', {}), 'this operation takes a list'],
    ['a text where a list belongs', callOf('PUT', '/labels/1', 'x'), 'this operation takes an object, or a list'],
    ['a list where a text belongs', callOf('POST', '/markdown', []), 'this operation takes a text'],
    ['bytes where a text belongs', callOf('POST', '/markdown', 'eA==', { encoding: 'base64' }), 'takes a text'],
    ['base64 with white space', callOf('PUT', '/any/x', 'eA= =', { encoding: 'base64' }), 'it is not base64'],
    ['base64 without padding', callOf('PUT', '/any/x', 'eA', { encoding: 'base64' }), 'it is not base64'],
    ['base64url', callOf('PUT', '/any/x', '_-8=', { encoding: 'base64' }), 'it is not base64'],
    ['another encoding', callOf('PUT', '/any/x', 'eA==', { encoding: 'hex' }), 'encoding: must be "base64"'],
    ['an encoding of an object', callOf('PUT', '/labels/1', {}, { encoding: 'base64' }), 'encoding: it says'],
    ['an encoding of nothing', callOf('PUT', '/any/x', undefined, { encoding: 'base64' }), 'encoding: it says'],
    ['a number', callOf('PUT', '/labels/1', 7), 'data: must be an object'],
    ['null', callOf('PUT', '/labels/1', null), 'data: must be an object'],
    [
      'a list that says it is a form',
      callOf('PUT', '/labels/1', [], typed('application/x-www-form-urlencoded')),
      'of a list or an object is JSON',
    ],
    [
      'a text that says it is JSON',
      callOf('POST', '/markdown', '{"a":1,"a":2}', typed('application/json')),
      'is not JSON',
    ],
    [
      'a text that is a form with a method',
      callOf('PUT', '/any/x', '_method=DELETE', typed('application/x-www-form-urlencoded')),
      'names a method',
    ],
    ['parts that name a method', callOf('POST', '/files', { _method: 'DELETE' }), 'names a method'],
    ['a part that is an object', callOf('POST', '/files', { a: { b: 1 } }), 'a part is a text'],
    ['a part that is nothing', callOf('POST', '/files', { a: null }), 'a part is a text'],
    [
      'a file with more members',
      callOf('POST', '/files', { a: { filename: 'x', data: '', x: 1 } }),
      'a part is a text',
    ],
    [
      'a file that is no base64',
      callOf('POST', '/files', { a: { filename: 'x', data: '!', encoding: 'base64' } }),
      'not base64',
    ],
    [
      'a file of no type',
      callOf('POST', '/files', { a: { filename: 'x', data: '', content_type: 'a\r\nb: c' } }),
      'content_type is',
    ],
  ])('%s answers 400, and nothing is sent', async (_, call, words) => {
    const answer = await withoutCalls(world, () => agent.act(call));
    expect(answer, answer.text).toMatchObject({ status: 400, body: { error: 'invalid_request' } });
    expect(answer.body.detail).toContain(words);
    const { row } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(row).toMatchObject({ result: 'errored', reason: 'invalid_request' });
    await world.forgive();
  });

  describe('a rule about the body applies against bodies that are not read', () => {
    const DENY = { effect: 'deny', when: 'has(request.body.amount) && request.body.amount > 1000' };
    const encoded = BYTES.toString('base64');
    const TWICE = '{"amount":1,"amount":1}';
    const PARTS = 'multipart/form-data; boundary=x';
    const inParts = (...fields: [string, string][]) =>
      `${fields.map(([name, value]) => `--x\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`).join('')}--x--\r\n`;
    const cases: [string, ReturnType<typeof callOf>, string, string | Buffer, number][] = [
      ['a list', callOf('PUT', '/labels/1', [{ amount: 1 }]), 'application/json', '[{"amount":1}]', 403],
      ['a text', callOf('PUT', '/any/x', 'amount'), 'text/plain; charset=utf-8', 'amount', 403],
      [
        'a file of JSON with a name twice',
        callOf('PUT', '/any/x', TWICE, typed('application/json')),
        'application/json',
        TWICE,
        403,
      ],
      ['bytes', callOf('PUT', '/any/x', encoded, { encoding: 'base64' }), 'application/octet-stream', BYTES, 403],
      ['small parts', callOf('POST', '/files', { amount: 1 }), PARTS, inParts(['amount', '1']), 200],
      ['large parts', callOf('POST', '/files', { amount: 1001 }), PARTS, inParts(['amount', '1001']), 403],
      [
        'parts with a name twice',
        callOf('POST', '/files', { amount: [1, 2] }),
        PARTS,
        inParts(['amount', '1'], ['amount', '2']),
        403,
      ],
      ['a small object', callOf('PUT', '/labels/1', { amount: 1 }), 'application/json', '{"amount":1}', 200],
      ['a large object', callOf('PUT', '/labels/1', { amount: 1001 }), 'application/json', '{"amount":1001}', 403],
      [
        'a small form',
        callOf('POST', '/any/forms', { amount: 1 }),
        'application/x-www-form-urlencoded',
        'amount=1',
        200,
      ],
      [
        'a large form',
        callOf('POST', '/any/forms', { amount: '1001' }),
        'application/x-www-form-urlencoded',
        'amount=1001',
        403,
      ],
      [
        'a text that is JSON',
        callOf('PUT', '/any/x', '{"amount":1}', typed('application/json')),
        'application/json',
        '{"amount":1}',
        200,
      ],
      [
        'large JSON of a form platform',
        { ...callOf('POST', '/v2/x', { amount: 1001 }), platform: 'forms' },
        'application/json',
        '{"amount":1001}',
        403,
      ],
    ];
    test.each(cases)('%s, through /v1/actions and /proxy', async (_, call, type, body, status) => {
      const limited = await organisation.agent({ rules: [{ effect: 'allow' }, DENY], grants: grants() });
      const asked = await limited.act(call);
      const ask = rawClient(() => limited);
      const sent = await ask(call.method, `/proxy/${call.platform}-main${call.endpoint}`, {
        body,
        headers: { 'content-type': type },
      });
      expect([asked.status, sent.status], asked.text).toEqual([status, status]);
      if (status === 403)
        expect([asked.body.reason, sent.body.error]).toEqual(['denied_by_policy', 'denied_by_policy']);
    });
  });

  test('held bytes are sealed, described to the approver, and sent as approved', async () => {
    const careful = await organisation.agent({ rules: [{ effect: 'require_approval' }], grants: grants() });
    const secret = Buffer.concat([BYTES, Buffer.from('nobody-reads-this-in-the-store')]);
    const call = callOf('PUT', '/any/held.bin', secret.toString('base64'), {
      encoding: 'base64',
      ...typed('image/png'),
    });
    const id = await careful.hold(call);
    const held = (await organisation.ask('GET', `/owner/approvals/${id}`)).body;
    const sha256 = createHash('sha256').update(secret).digest('hex');
    expect(held.correctable).toBe(false);
    expect(held.request).toMatchObject({
      body: null,
      upload: { media_type: 'image/png', bytes: secret.length, sha256 },
      headers: { 'content-type': 'image/png' },
    });
    await organisation.approve(id);
    const done = await careful.get(`/v1/approvals/${id}?wait=10`);
    expect(done.body, done.text).toMatchObject({ status: 'approved', result: { status: 200 } });
    expect(lastSeen()).toMatchObject({ method: 'PUT', target: '/v1/any/held.bin', body: secret.toString('utf8') });
    expect(lastSeen()?.headers).toMatchObject({ 'content-type': 'image/png', 'content-length': `${secret.length}` });
  });

  test.each<[string, ReturnType<typeof callOf>, unknown]>([
    ['list', callOf('PUT', '/labels/2', ['a'], typed(PATCH)), ['a']],
    ['text', callOf('POST', '/markdown', '# held'), '# held'],
    ['object in parts', callOf('POST', '/files', { a: 'b' }), { a: 'b' }],
  ])('a held %s is shown to the approver, and sent once', async (_, call, body) => {
    const careful = await organisation.agent({ rules: [{ effect: 'require_approval' }], grants: grants() });
    const id = await careful.hold(call);
    const held = (await organisation.ask('GET', `/owner/approvals/${id}`)).body;
    expect(held.request).toMatchObject({ body, upload: null });
    // As the documentation says: only where the body is an object.
    expect(held.correctable).toBe(!Array.isArray(body) && typeof body === 'object');
    const before = world.upstream.seen.length;
    await organisation.approve(id);
    const done = await careful.get(`/v1/approvals/${id}?wait=10`);
    expect(done.body, done.text).toMatchObject({ status: 'approved', result: { status: 200 } });
    expect(world.upstream.seen.length).toBe(before + 1);
  });

  test('a held upload through /proxy is described to the approver too', async () => {
    const careful = await organisation.agent({ rules: [{ effect: 'require_approval' }], grants: grants() });
    const ask = rawClient(() => careful);
    const shown = async (body: string | Buffer, type: string) => {
      const headers = { 'content-type': type, 'x-svc-wait': '0' };
      const refused: Answer = await ask('PUT', '/proxy/demo-main/any/raw.bin', { body, headers });
      return (await organisation.ask('GET', `/owner/approvals/${refused.body.approval_id}`)).body.request;
    };
    expect(await shown(BYTES, 'application/zip')).toMatchObject({
      body: null,
      upload: { media_type: 'application/zip', bytes: BYTES.length },
    });
    expect(await shown('plain words', 'text/plain')).toMatchObject({ body: 'plain words', upload: null });
  });
});
