/** The lines that clients write, in arbitrary chunks; and the hash by which identical calls are recognised. */
import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { parseStrictJson } from '../../json/strict.ts';
import type { Action, Caller } from '../../mcp/client/action.ts';
import { misreadIn } from '../../mcp/stdio/line-transport.ts';
import { type Line, lineReader } from '../../mcp/stdio/lines.ts';
import { toolAnswer } from '../../mcp/tools/answer.ts';
import { describePermissions } from '../../mcp/tools/describe.ts';
import type { ToolRequest } from '../../mcp/tools/peer.ts';
import { personKeyAsNamed } from '../../mcp/tools/person-key.ts';
import { hashOf, repeatsInMemory } from '../../mcp/tools/repeats.ts';
import { waitFor, withNews } from '../../mcp/tools/waiting.ts';

/** Returns the lines that a reader produces from these chunks. */
function linesOf(chunks: readonly Buffer[], most: number): Line[] {
  const lines: Line[] = [];
  const read = lineReader(most, (line) => lines.push(line));
  for (const chunk of chunks) read(chunk);
  return lines;
}

test('lines are complete however they are split into chunks; of a line that is too long only its two ends are kept', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 40, size: 'max' }).map((line) => line.replaceAll('\n', ' '));
  fc.assert(
    fc.property(fc.array(text), fc.array(fc.nat(30), { minLength: 1 }), (written, cuts) => {
      const bytes = Buffer.from(written.map((line) => `${line}\n`).join(''));
      const chunks: Buffer[] = [];
      for (let from = 0, turn = 0; from < bytes.length; turn++) {
        const size = 1 + cuts[turn % cuts.length]!;
        chunks.push(bytes.subarray(from, from + size));
        from += size;
      }
      const expected = written.map((line): Line => {
        if (Buffer.byteLength(line) <= 50) return { kind: 'line', text: line };
        return { kind: 'too_long', beginning: line, end: line };
      });
      expect(linesOf(chunks, 50)).toEqual(expected);
    }),
    { numRuns: 200 },
  );
});

describe('the hash of a call', () => {
  const CALL: Action = {
    platform: 'p',
    endpoint: '/x',
    method: 'POST',
    scope: 's',
    data: { a: 1, b: [1, { c: null }] },
  };

  test('does not depend on the order of members or the reason, and differs for any other difference', () => {
    const turned = Object.fromEntries(Object.entries(CALL).toReversed()) as unknown as Action;
    const data = { b: [1, { c: null }], a: 1 };
    for (const same of [turned, { ...CALL, data }, { ...CALL, reason: 'because' }])
      expect(hashOf(same, undefined)).toBe(hashOf(CALL, undefined));
    const others: Action[] = [
      { ...CALL, method: 'PUT' },
      { ...CALL, data: { ...(CALL.data as object), a: '1' } },
      { ...CALL, data: [{ a: 1 }] },
      { ...CALL, data: 'eA==' },
      { ...CALL, data: 'eA==', encoding: 'base64' },
      { ...CALL, data: { a: 1, b: [{ c: null }, 1] } },
      { ...CALL, connection_id: 'c' },
      { ...CALL, headers: {} },
    ];
    expect(new Set([CALL, ...others].map((one) => hashOf(one, undefined))).size).toBe(others.length + 1);
  });

  test('differs between people, and is the same for different assertions about one person', () => {
    const assertion = (claims: unknown) => ({
      assertion: ['{}', JSON.stringify(claims), 'x'].map((part) => Buffer.from(part).toString('base64url')).join('.'),
    });
    const ann = { iss: 'https://id.example', sub: 'ann' };
    const people: Caller[] = [
      { source: 'slack', id: 'U1' },
      { source: 'slack', id: 'u1' },
      { source: 'teams', id: 'U1' },
      assertion(ann),
      assertion({ ...ann, sub: 'bob' }),
      assertion({ ...ann, iss: 'https://other.example' }),
      // Only the broker can tell which claim names the person.
      assertion({ ...ann, email: 'ann@example.com' }),
      assertion([ann]),
      { assertion: 'x' },
      { assertion: 'y' },
    ];
    const hashes = people.map((caller) => hashOf({ ...CALL, caller }, personKeyAsNamed(caller)));
    expect(new Set([hashOf(CALL, undefined), ...hashes]).size).toBe(people.length + 1);
    const later = assertion({ exp: 2, jti: 'j', nbf: 1, sub: 'ann', iat: 1, iss: 'https://id.example' });
    expect(personKeyAsNamed(later)).toBe(personKeyAsNamed(assertion(ann)));
  });

  test('equal hashes mean equal JSON', () => {
    const data = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 3 });
    fc.assert(
      fc.property(data, data, (a, b) => {
        const same = hashOf({ ...CALL, data: a }, undefined) === hashOf({ ...CALL, data: b }, undefined);
        // -0 becomes 0 in JSON.
        const plain = (value: unknown) => JSON.parse(JSON.stringify(value));
        if (same) expect(plain(a)).toEqual(plain(b));
        expect(hashOf({ ...CALL, data: plain(a) }, undefined)).toBe(hashOf({ ...CALL, data: a }, undefined));
      }),
      { numRuns: 200 },
    );
  });

  test('the key and first reason of an unanswered call are kept, and the next call has a new key', async () => {
    const repeats = repeatsInMemory();
    const first = await repeats.begin('h', 'one');
    const { key, reason } = first;
    expect(await repeats.begin('h', 'two')).toMatchObject({ key, reason, isNew: false });
    await repeats.held('h', key, 'approval');
    expect(await repeats.find('h')).toMatchObject({ key, reason, approvalId: 'approval' });
    await repeats.endApproval('another');
    expect(await repeats.find('h')).toBeDefined();
    await repeats.endApproval('approval');
    expect(await repeats.find('h')).toBeUndefined();
    expect((await repeats.begin('h', 'one')).key).not.toBe(first.key);
  });
});

describe('JSON that parsing would change', () => {
  test.each([
    ['{"a":{"b":[1,1234567890123456789]}}', 'a/b/1'],
    ['{"a":1e999}', 'a'],
    ['{"a":"\\"","b":[],"c":[{"to":"x","cc":{},"t\\u006f":"y"}]}', 'c/0/to'],
    ['[[],{"a":1},{"b":-0.1000000000000000055}]', '2/b'],
  ])('in %s the problem is found at %s', (text, place) => {
    expect(misreadIn(text)?.place.join('/')).toBe(place);
  });

  test('misreadIn reports exactly what the broker itself refuses', () => {
    const name = fc.constantFrom('a', 'b', '"', '\\', '{', 'ß');
    const digits = fc.string({ unit: fc.constantFrom('0', '1', '5', '9'), minLength: 1, maxLength: 20 });
    const number = fc
      .tuple(fc.boolean(), digits, fc.option(digits), fc.option(fc.integer({ min: -400, max: 400 })))
      .map(([minus, whole, part, power]) =>
        [
          minus ? '-' : '',
          whole.replace(/^0+(?=.)/, ''),
          part === null ? '' : `.${part}`,
          power === null ? '' : `E${power}`,
        ].join(''),
      );
    const { value } = fc.letrec<{ value: string }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 4, withCrossShrink: true },
        number,
        fc.oneof(name, fc.constant('1e999')).map((text) => JSON.stringify(text)),
        fc.array(tie('value'), { maxLength: 3 }).map((items) => `[${items.join(' , ')}]`),
        fc
          .array(fc.tuple(name, tie('value')), { maxLength: 3 })
          .map((members) => `{ ${members.map(([key, item]) => `${JSON.stringify(key)} :${item}`).join(',')}}`),
      ),
    }));
    fc.assert(
      fc.property(value, (text) => {
        expect(misreadIn(text) === undefined, text).toBe(parseStrictJson(text).ok);
      }),
      { numRuns: 500 },
    );
  });
});

/** Returns a request that records its progress: the message and the seconds of each notification. */
function toldRequest(signal = new AbortController().signal) {
  const told: [string, number][] = [];
  const request: ToolRequest = {
    takesTasks: false,
    opensLinks: 'no',
    signal,
    progress: async (message, seconds) => void told.push([message, seconds]),
  };
  return { request, told };
}

test('a client that waits gets progress immediately and then repeatedly, with more seconds each time', async () => {
  const { request, told } = toldRequest();
  let polls = 0;
  const poll = async () => {
    await new Promise((later) => setTimeout(later, 60));
    return { ok: true as const, value: ++polls };
  };
  const given = { request, endsAt: Date.now() + 10_000, news: 'wait', newsEveryMs: 20 };
  expect(await waitFor(poll, (value) => value === 2, given)).toEqual({ ok: true, value: 2 });
  expect(told[0]).toEqual(['wait', 0]);
  expect(told.length).toBeGreaterThanOrEqual(3);
});

test('while a platform works on a call, the waiting client gets a notification every ten seconds', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { request, told } = toldRequest();
  const answered = Promise.withResolvers<number>();
  const asking = withNews(request, 'not yet', () => answered.promise);
  await vi.advanceTimersByTimeAsync(9_000);
  expect(told).toEqual([]);
  await vi.advanceTimersByTimeAsync(21_500);
  const thrice = [10, 20, 30].map((seconds) => ['not yet', seconds]);
  expect(told).toEqual(thrice);
  answered.resolve(1);
  expect(await asking).toBe(1);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(told).toEqual(thrice);
});

test('a cancelled request gets no more notifications, although its work goes on', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const cancelling = new AbortController();
  const { request, told } = toldRequest(cancelling.signal);
  const answered = Promise.withResolvers<number>();
  const asking = withNews(request, 'not yet', () => answered.promise);
  await vi.advanceTimersByTimeAsync(11_000);
  cancelling.abort();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(told).toEqual([['not yet', 10]]);
  answered.resolve(1);
  expect(await asking).toBe(1);
});

test('an answer that is too large for a model is truncated at a whole character, and includes its original size', () => {
  const data = 'ß'.repeat(200_000);
  const answer = toolAnswer({ status: 'answered', upstream_status: 200, data: `x${data}` });
  expect(answer.structuredContent).toMatchObject({ truncated: true, bytes: 400_001 });
  expect(String(answer.structuredContent.data)).toMatch(/^xß+$/);
  expect(answer.content[0]).toMatchObject({
    text: expect.stringMatching(/^data is only the beginning.* 400001 bytes/),
  });
  const small = toolAnswer({ status: 'answered', upstream_status: 200, data: { a: 1 } });
  expect(small.structuredContent).toEqual({ status: 'answered', upstream_status: 200, data: { a: 1 } });
});

test('an error of the platform is marked as one: by its status, or as the failed tool of an MCP server', () => {
  const isError = (upstream_status: number, data: unknown) =>
    toolAnswer({ status: 'answered', upstream_status, data }).isError;
  const content = [{ type: 'text', text: 'No such issue.' }];
  expect(isError(404, { message: 'Not Found' })).toBe(true);
  expect(isError(200, { isError: true, content })).toBe(true);
  expect(isError(200, { isError: false, content })).toBeUndefined();
  expect(isError(200, { error: { code: -32602, message: 'Unknown tool' } })).toBe(true);
  expect(isError(200, { error: { code: 'none', message: '' } }), 'a member of a REST answer').toBeUndefined();
  expect(isError(200, { id: 1, error: { code: 1, message: 'of an earlier run' } }), 'of a REST answer').toBeUndefined();
  expect(isError(200, { isError: true }), 'a member of a REST answer').toBeUndefined();
  expect(isError(200, null)).toBeUndefined();
});

test('the description of permissions is limited in length', () => {
  const agent = { id: 'x', name: 'x' };
  const platform = (name: string) => ({
    platformId: name,
    platformName: name,
    scopes: [`${name}:read`],
    requireApproval: false,
  });
  const many = Array.from({ length: 1000 }, (_, index) => platform(`platform-${index}`));
  const told = describePermissions({ agent, platforms: many, version: 'v' });
  expect(told.length).toBeLessThan(4_200);
  expect(told).toMatch(/and \d+ more: call list_permissions$/);
  expect(describePermissions({ agent, platforms: [], version: 'v' })).toContain('request_access');
  expect(describePermissions(undefined)).toContain('list_permissions');
  const server = { ...platform('tools'), serverHost: 'mcp.example' };
  expect(describePermissions({ agent, platforms: [server], version: 'v' })).toContain('POST to /tools/NAME');
  const connections = [
    { ...many[0]!, connection_id: 'c', label: 'main', status: 'per_person' as const, default: true },
  ];
  const ofPeople = { ...many[0]!, connections };
  expect(describePermissions({ agent, platforms: [ofPeople], version: 'v' })).toContain('name the person in caller');
  const careful = {
    ...platform('crm'),
    requireApproval: true,
    callStyle: 'graphql',
    constraints: { repos: ['acme/*'] },
  };
  expect(describePermissions({ agent, platforms: [careful], version: 'v' })).toContain(
    '- crm: crm:read [every call waits for a person; GraphQL: write_platform, POST to /, data {query, variables}; only {"repos":["acme/*"]}]',
  );
});

test('with several connections each is described with its own scopes, and the description says when a connection has to be named', () => {
  const agent = { id: 'x', name: 'x' };
  const granted = { scopes: ['crm:read'], requireApproval: false };
  const connection = (label: string, more: object = {}) => ({
    ...granted,
    connection_id: `id-${label}`,
    label,
    status: 'active' as const,
    default: false,
    ...more,
  });
  const told = (platform: object) =>
    describePermissions({
      agent,
      platforms: [{ platformId: 'crm', platformName: 'crm', ...granted, ...platform }],
      version: 'v',
    });
  const write = { scopes: ['crm:write'], approvalScopes: ['crm:write'], constraints: { recipients: ['@a.example'] } };
  expect(
    told({
      approvalScopes: ['crm:write'],
      connections: [connection('main', { default: true }), connection('two', write)],
    }),
  ).toContain(
    '- crm: crm:read [connections: main = id-main, two = id-two (crm:write (waits for a person); only {"recipients":["@a.example"]})]',
  );
  expect(told({ scopes: [], connections: [connection('two'), connection('three')] })).toContain(
    '- crm: only with connection_id [connections: two = id-two (crm:read), three = id-three (crm:read)]',
  );
});
