/**
 * Parameters that select for whom, or for which account, a call is made: refused through both entry points wherever a server may read them.
 */
import fc from 'fast-check';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { methodField, methodSearch } from '../../broker/calls/method-search.ts';
import { isListed, nameList } from '../../broker/policy/names.ts';
import { runToEnd } from '../../broker/runtime/pace.ts';
import { type Answer, expectStatus, type TestAgent } from '../world/agent.ts';
import { withoutCalls } from '../world/evidence.ts';
import { listAuditRows } from '../world/rows.ts';
import { ALLOW_ALL, type Organisation, startWorld, type World } from '../world/world.ts';
import { rawClient } from './raw-client.ts';

/** Rules like GitLab's: a name, one for the query only, and a prefix. */
const REFUSED = ['sudo', 'private_token', '$userProject', { name: 'key', in: 'query' as const }, 'x-acting-*'];
const SCOPES = { 'demo:read': ['GET /**'], 'demo:write': ['POST /**', 'PUT /**', 'PATCH /**', 'DELETE /**'] };

let world: World;
let organisation: Organisation;
let agent: TestAgent;
beforeAll(async () => {
  world = await startWorld();
  organisation = await world.demoOrganisation();
  const bodies = { 'POST /files': ['text', 'bytes'], 'POST /parts': 'multipart' } as const;
  const more = { refused_parameters: REFUSED, scopes: SCOPES };
  await organisation.platform({ id: 'lab', manifest: { ...more, bodies } as never });
  await organisation.platform({ id: 'forms', manifest: { ...more, body: 'form' } as never });
  agent = await organisation.agent({ rules: ALLOW_ALL, grants: { lab: {}, forms: {} } });
});
beforeEach(() => world.forgive());

const raw = rawClient(() => agent);
const FORM = 'application/x-www-form-urlencoded';
const PARTS = 'multipart/form-data; boundary=b';
const part = (name: string) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n1\r\n--b--\r\n`;
const send = (method: string, path: string, body?: string, type = 'application/json') =>
  raw(method, `/proxy/lab-main${path}`, body === undefined ? {} : { body, headers: { 'content-type': type } });
const act = (endpoint: string, method: string, more: object = {}, platform = 'lab') =>
  agent.act({ platform, endpoint, method, scope: method === 'GET' ? 'demo:read' : 'demo:write', ...more });

/** The parts that POST /v1/actions makes of an object. */
function formDataOf(data: object): FormData {
  const form = new FormData();
  for (const [name, values] of Object.entries(data))
    for (const value of [values].flat())
      if (typeof value !== 'object') form.append(name, String(value));
      else form.append(name, new Blob([value.data], { type: value.content_type }), value.filename);
  return form;
}

/** Expects a 400 with this code, a row with it, and nothing sent. */
async function expectRefused(asking: () => Promise<Answer>, code: string) {
  const answer = await withoutCalls(world, asking);
  expect([answer.status, answer.body.error], answer.text).toEqual([400, code]);
  expect(answer.body.detail).toContain(
    'which may say for whom or for which account the call is made, or how it is answered',
  );
  expect(answer.body.detail).toContain('refused_parameters');
  const [row] = await listAuditRows(world.db, organisation.id, { limit: 1 });
  expect(row).toMatchObject({ kind: 'action', result: 'errored', reason: code });
}

describe('in the query', () => {
  test.each([
    'sudo=root',
    'sudo',
    'SUDO=root',
    'a=1&Sudo=root',
    'a=1;sudo=root',
    's%75do=root',
    '%73%75%64%6F=root',
    'sudo[]=root',
    'sudo[id]=1',
    'sudo%5B%5D=root',
    '[sudo]=root',
    '+sudo=root',
    's.udo=root',
    '$userProject=p',
    '%24userproject=p',
    'key=AIza',
    'KEY[]=AIza',
    'x-acting-user=ann',
    'X-Acting-For=ann',
    'x_acting_as=ann',
    'x-acting=ann',
  ])('?%s is refused through /v1/actions and /proxy', async (query) => {
    const code = 'invalid_endpoint';
    await expectRefused(() => act(`/items?${query}`, 'GET'), code);
    await expectRefused(() => act(`/items?${query}`, 'POST', { data: { a: 1 } }), code);
    await expectRefused(() => send('GET', `/items?${query}`), code);
    await expectRefused(() => send('DELETE', `/items?${query}`), code);
  });

  test.each(['sudoer=1', 'user[sudo]=1', 'a=sudo', 'userProject=p', 'keys=1', 'x-act=1', '_sudo=1'])(
    '?%s is another name, and is sent through /v1/actions and /proxy',
    async (query) => {
      for (const answer of [await act(`/items?${query}`, 'GET'), await send('GET', `/items?${query}`)])
        expect(answer.status, answer.text).toBe(200);
    },
  );

  test('?private_token=x is refused on every platform, as a credential', async () => {
    for (const path of ['lab', 'demo'].map((platform) => [platform, '/items?private_token=x'] as const)) {
      const by = path[0] === 'lab' ? agent : await organisation.agent({ rules: ALLOW_ALL });
      const call = { platform: path[0], endpoint: path[1], method: 'GET', scope: 'demo:read' };
      const answer = await by.act(call);
      expect([answer.status, answer.body.error]).toEqual([400, 'invalid_endpoint']);
      expect(answer.body.detail).toContain('names a credential');
    }
  });

  test('in a HEAD request too', async () => {
    expect((await withoutCalls(world, () => send('HEAD', '/items?sudo=root'))).status).toBe(400);
  });
});

describe('in the body', () => {
  test.each<[object]>([
    [{ sudo: 'root' }],
    [{ a: 1, SUDO: 'root' }],
    [{ s_udo: 1 }],
    [{ 'sudo[]': 'root' }],
    [{ sudo: null }],
    [{ sudo: { id: 1 } }],
    [{ private_token: 'x' }],
    [{ privateToken: 'x' }],
    [{ 'x-acting-user': 'ann' }],
    [{ $userProject: 'p' }],
  ])('JSON %j is refused through /v1/actions and /proxy', async (data) => {
    await expectRefused(() => act('/items', 'POST', { data }), 'invalid_request');
    await expectRefused(() => send('POST', '/items', JSON.stringify(data)), 'invalid_request');
    await expectRefused(() => send('PATCH', '/items/1', JSON.stringify(data)), 'invalid_request');
  });

  test.each([
    ['sudo=root', FORM],
    ['a=1&SUDO=root', FORM],
    ['%73udo=root', FORM],
    ['sudo[]=root', FORM],
    ['sudo%5Bid%5D=1', FORM],
    ['a=1;sudo=root', FORM],
    ['a=1&a=2&sudo=root', FORM],
    ['a=1&%u0073udo=root', FORM],
    ['sudo%00x=root', FORM],
    ['sudo=root', ' '],
    ['sudo=root', `${FORM}, text/plain`],
    [part('sudo'), PARTS],
    [part('SUDO[id]'), PARTS],
    [part('su\\do'), PARTS],
    [part('private_token').replace('name=', "name*=utf-8''").replaceAll('"', ''), PARTS],
    [part('x-acting-user'), `${PARTS}; boundary=c`],
    ['{"a":1,"s\\u0075do":"root"}', 'application/json; charset=iso-8859-1'],
    ['{"a":{"b":1},"Sudo":1}', 'text/plain; a=/json'],
  ])('%j with the type %s is refused', async (body, type) => {
    await expectRefused(() => send('POST', '/items', body, type), 'invalid_request');
  });

  test('forms, multipart bodies and bytes that POST /v1/actions encodes are searched too', async () => {
    await expectRefused(() => act('/items', 'POST', { data: { sudo: 'root' } }, 'forms'), 'invalid_request');
    await expectRefused(() => act('/parts', 'POST', { data: { Sudo: 'root' } }), 'invalid_request');
    for (const [data, type] of [
      ['a=1&sudo=1', FORM],
      ['{"sudo":1}', 'application/json'],
      ['a=1&a=2&sudo=1', FORM],
    ]) {
      const headers = { 'content-type': type };
      await expectRefused(() => act('/files', 'POST', { data, headers }), 'invalid_request');
      const encoded = { data: Buffer.from(data!).toString('base64'), encoding: 'base64', headers };
      await expectRefused(() => act('/files', 'POST', encoded), 'invalid_request');
    }
  });

  test.each<[object]>([
    [{ a: ['1', '2'], sudo: 'root' }],
    [{ sudo: ['root', 'toor'] }],
    [{ 'a%': 1, sudo: 'root' }],
    [{ 's%75do': 'root' }],
    [{ 'su\\do': 'root' }],
    [{ file: { filename: 'a"b.txt', data: 'x' }, sudo: 'root' }],
    [{ file: { filename: 'a.txt', data: 'x', content_type: 'text/plain; name=sudo' } }],
  ])('parts %j are refused although their members are not judged', async (data) => {
    await expectRefused(() => act('/parts', 'POST', { data }), 'invalid_request');
    const written = new Response(formDataOf(data));
    const { headers } = written;
    await expectRefused(
      async () => await send('POST', '/parts', await written.text(), headers.get('content-type') ?? ''),
      'invalid_request',
    );
  });

  test.each<[object]>([[{ a: ['sudo', '2'], 'b%': 'sudo' }], [{ file: { filename: 'sudo', data: 'name="sudo"' } }]])(
    'parts %j are sent',
    async (data) => {
      await expectStatus(200, act('/parts', 'POST', { data }));
    },
  );

  test.each<[string, string]>([
    ['{"a":{"sudo":1},"b":["sudo"],"c":"sudo","key":"x"}', 'application/json'],
    ['user[sudo]=1&key=x&a=sudo', FORM],
    [part('key'), PARTS],
    ['sudo=1', 'text/plain'],
  ])('%s with the type %s is sent', async (body, type) => {
    await expectStatus(200, send('POST', '/items', body, type));
    expect(world.upstream.seen.at(-1)?.body).toBe(body);
  });

  const PADDING = 'x'.repeat(1_200_000);
  test.each([
    [`a=${PADDING}&sudo=1&b=1`, FORM],
    [`{"a":"${PADDING}","sudo":1,"b":1}`, 'application/json'],
    [`--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n${PADDING}\r\n${part('sudo')}`, PARTS],
  ])('a body that is too long to be judged is cut off at the name', async (body, type) => {
    const answer = await withoutCalls(world, () => send('POST', '/items', body, type));
    expect(answer).toMatchObject({ status: 502, body: { detail: expect.stringContaining('refused_parameters') } });
    const passing = await send('POST', '/items', body.replace('sudo', 'suda'), type);
    expect(passing.status, passing.text.slice(0, 200)).toBe(200);
  });

  test('many members are searched', async () => {
    const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`m${i}`, 1]));
    await expectRefused(() => act('/items', 'POST', { data: { ...many, sudo: 1 } }), 'invalid_request');
    expect((await act('/items', 'POST', { data: many })).status).toBe(200);
  });
});

test('a platform without refused parameters accepts such names', async () => {
  const plain = await organisation.agent({ rules: ALLOW_ALL });
  const call = { platform: 'demo', endpoint: '/items?sudo=1&key=x', method: 'POST', scope: 'demo:write' };
  expect((await plain.act({ ...call, data: { sudo: 'x', token: 'y' } })).status).toBe(200);
});

describe('names in any notation', () => {
  const list = nameList(['sudo', 'x-acting-*'])!;
  const spelled = fc
    .tuple(fc.constantFrom('sudo', 'x-acting-user'), fc.array(fc.nat(3), { minLength: 13, maxLength: 13 }))
    .map(([name, how]) =>
      [...name]
        .map((letter, i) => [letter, letter.toUpperCase(), `%${letter.charCodeAt(0).toString(16)}`, letter][how[i]!])
        .join(''),
    );
  const tail = fc.constantFrom('', '[]', '[a]', '%5B%5D', '[a][b]', '%00x');

  test('are found in a form, however it is split', () => {
    fc.assert(
      fc.property(spelled, tail, fc.nat(40), (name, end, cut) => {
        const bytes = Buffer.from(`a=1&${name}${end}=root&b=2`);
        expect(isListed(list, decodeURIComponent(name + end))).toBe(true);
        const found = runToEnd(methodField(FORM, bytes, list));
        expect(found).toBeDefined();
        const search = methodSearch(FORM, list)!;
        const at = cut % bytes.length;
        expect(search.push(bytes.subarray(0, at)) ?? search.push(bytes.subarray(at)) ?? search.end()).toBe(found);
      }),
      { numRuns: 500 },
    );
  });

  test('are found in JSON and in multipart bodies', () => {
    fc.assert(
      fc.property(spelled, fc.nat(60), (written, cut) => {
        const name = decodeURIComponent(written);
        const escaped = [...name].map((letter, i) =>
          i % 2 === cut % 2 ? letter : `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
        );
        for (const [type, text] of [
          ['application/json', `{"a":{"b":[1]},"${escaped.join('')}":0}`],
          [PARTS, part(name)],
        ] as const) {
          const bytes = Buffer.from(text);
          const search = methodSearch(type, list)!;
          const at = cut % bytes.length;
          const found = search.push(bytes.subarray(0, at)) ?? search.push(bytes.subarray(at)) ?? search.end();
          expect(found, text).toBe(name);
        }
      }),
      { numRuns: 500 },
    );
  });
});
