import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CallAsk, Method } from '../../broker/policy/facts.ts';
import { compilePlatformRules } from '../../broker/policy/operation.ts';
import { compilePattern } from '../../broker/policy/pattern.ts';
import { recipientRulesFor } from '../../broker/policy/recipients.ts';
import { sized } from '../world/runner/thorough.ts';

const call = (method: Method, path: string, rest: Partial<CallAsk> = {}): CallAsk => ({
  method,
  path,
  query: '',
  headers: {},
  body: undefined,
  ...rest,
});

describe('recipient rules', () => {
  const mail = compilePlatformRules({
    kind: 'rest',
    scopes: { 'm:send': ['POST /messages', 'POST /drafts'] },
    recipients: { 'POST /messages': ['/to', { pointer: '/raw', format: 'rfc822-base64url' }] },
  });
  const pointers = [{ pointer: '/to' }, { pointer: '/raw', format: 'rfc822-base64url' }];

  test('are found for their operation, with the body as the subject of their pointers', () => {
    const body = { to: 'a@x.example' };
    expect(recipientRulesFor(mail, call('POST', '/messages', { body }))).toMatchObject([{ pointers, subject: body }]);
    expect(recipientRulesFor(mail, call('POST', '/drafts', { body }))).toEqual([]);
    expect(recipientRulesFor(mail, call('GET', '/messages'))).toEqual([]);
  });

  test.each([
    '/Messages/',
    '/messages.',
    '/messages;v=1',
    '/%6Dessages',
    '/messages.json',
    '/Messages.JSON/',
    '/messages.v1%20',
  ])('are found for another spelling of the endpoint, too: %s', (path) => {
    expect(recipientRulesFor(mail, call('POST', path))).toMatchObject([{ pointers, subject: {} }]);
  });

  test('apply to a path exactly when a deny rule for the same path would', () => {
    const source = { kind: 'rest' as const, scopes: {}, recipients: { 'POST /v1/users/*/send': ['/to'] } };
    const rules = compilePlatformRules(source);
    const denied = compilePattern('/v1/users/*/send', 'path');
    const slash = fc.constantFrom('/', '/', '/', '%2F', '%2f', '//');
    const word = fc.constantFrom('v1', 'V1', '%761', 'users', 'Users', 'ann', 'send', 'Send', 's%65nd', 'sent', '');
    const tail = fc.constantFrom('', '', '.json', '.JSON', '.', '%20', ';a=b', '%3Fa', '/', '.json/', '.v1.json');
    const pieces = fc.tuple(fc.array(fc.tuple(slash, word), { minLength: 2, maxLength: 4 }), tail);
    const near = fc.tuple(slash, slash, slash, fc.constantFrom('send', 'Send', 's%65nd'), tail);
    const path = fc.oneof(
      near.map(([a, b, c, send, end]) => `/v1${a}users${b}ann${c}${send}${end}`),
      pieces.map(([segments, end]) => `/v1${segments.flat().join('')}${end}`),
    );
    const numRuns = sized(200, 500);
    let found = 0;
    fc.assert(
      fc.property(path, (path) => {
        const applies = recipientRulesFor(rules, call('POST', path)).length > 0;
        expect(applies).toBe(denied.matchesAnySpelling(path));
        if (applies && !denied.matches(path)) found++;
      }),
      { numRuns },
    );
    // A quarter of the paths are such, so that less than a tenth of these runs is no coincidence.
    expect(found).toBeGreaterThan(numRuns / 10);
  });

  test('recipients in the query string are added to those in the body', () => {
    const asked = call('POST', '/messages', { body: { to: 'a@x.example' }, query: 'x=1&to=b%40y.example&to[]=c' });
    expect(recipientRulesFor(mail, asked).slice(1)).toMatchObject([
      { pointers: [{ pointer: '/to' }], subject: { to: 'b@y.example' } },
      { pointers: [{ pointer: '/to' }], subject: { to: 'c' } },
    ]);
  });

  test('recipients in the query string have the format of the pointer', () => {
    const share = { pointer: '/channels/*', format: 'ids', optional: true } as const;
    const chat = compilePlatformRules({ kind: 'rest', scopes: {}, recipients: { 'POST /share': ['/to', share] } });
    const found = recipientRulesFor(chat, call('POST', '/share', { query: 'Channels[0]=C1' }));
    expect(found.map(({ pointers, subject }) => ({ pointers, subject }))).toEqual([
      { pointers: [{ pointer: '/to' }, share], subject: {} },
      { pointers: [{ ...share, pointer: '/Channels' }], subject: { Channels: 'C1' } },
    ]);
  });

  test.each(['to.email', 'To.email', 'to[email]'])('a member named by its path in the query is found: ?%s=', (name) => {
    const post = compilePlatformRules({ kind: 'rest', scopes: {}, recipients: { 'POST /post': ['/to/email'] } });
    const found = recipientRulesFor(post, call('POST', '/post', { query: `${name}=b%40y.example&today.email=c` }));
    expect(found.slice(1).flatMap(({ subject }) => Object.values(subject))).toEqual(['b@y.example']);
  });

  test.each(['to', '/a~2', 'cc/*'])('a malformed pointer is refused: %s', (pointer) => {
    const source = { kind: 'rest' as const, scopes: {}, recipients: { 'POST /m': [pointer] } };
    expect(() => compilePlatformRules(source)).toThrow(`"${pointer}" is not a JSON pointer; write "/to"`);
  });

  describe('of GraphQL point into the arguments of the root field', () => {
    const invites = compilePlatformRules({
      kind: 'graphql',
      scopes: { 'g:invite': ['mutation invite'] },
      recipients: { 'mutation invite': ['/input/email'] },
    });
    const subjects = (query: string, variables = {}) =>
      recipientRulesFor(invites, call('POST', '/', { body: { query, variables } })).map(({ subject }) => subject);
    const expected = [{ input: { email: 'a@x.example' } }];

    test.each([
      ['written into the document', 'mutation { invite(input: {email: "a@x.example"}) { id } }', {}],
      ['in a variable', 'mutation($i: I!) { invite(input: $i) { id } }', { i: { email: 'a@x.example' } }],
      ['in a part', 'mutation($e: String) { invite(input: {email: $e}) { id } }', { e: 'a@x.example' }],
      ['as a default', 'mutation($e: String = "a@x.example") { invite(input: {email: $e}) { id } }', {}],
      ['under an alias', 'mutation { read: invite(input: {email: "a@x.example"}) { id } }', {}],
      ['in a fragment', 'mutation { ...F } fragment F on M { invite(input: {email: "a@x.example"}) { id } }', {}],
    ])('%s', (_, query, variables) => {
      expect(subjects(query, variables)).toEqual(expected);
    });

    test('each root field is a match of its own, and other fields have none', () => {
      const query =
        'mutation { a: invite(input: {email: "1"}) {id} b: invite(input: {email: "2"}) {id} other(input: {email: "3"}) }';
      expect(subjects(query)).toEqual([{ input: { email: '1' } }, { input: { email: '2' } }]);
      expect(subjects('query { invite(input: {email: "1"}) { id } }')).toEqual([]);
    });
  });
});
