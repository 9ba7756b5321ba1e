import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readAddress, readAddresses, readMessageRecipients } from '../../broker/policy/addresses.ts';
import type { JsonObject } from '../../broker/policy/facts.ts';
import { compilePlatformRules } from '../../broker/policy/operation.ts';
import { intersectRecipients, recipientEntryKind, refuseRecipients } from '../../broker/policy/recipients.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { sized } from '../world/runner/thorough.ts';
import { call, crmRules } from './world.ts';

const ALLOWED = ['@acme.example', 'Ann@partner.example'];

/** The violating recipients of a message; `[]` when there is no recipient to check, undefined when it may be sent. */
const send = (body: JsonObject | undefined, query = '') =>
  refuseRecipients(ALLOWED, crmRules, call({ method: 'POST', path: '/messages', body, query }))?.violating;

describe('allowed recipients', () => {
  test.each([
    ['one', 'bob@acme.example'],
    ['the domain in another letter case', 'bob@ACME.Example'],
    ['a listed address', 'Ann@partner.example'],
    ['several addresses in one string', 'bob@acme.example, Ann@partner.example,'],
    ['with a name', 'Bob B. <bob@acme.example>'],
    ['with a name in quotes', '"B, Bob" <bob@acme.example>'],
    ['with a name in other letters', 'J\u00f6rg \u738b <joerg@acme.example>'],
    ['with an encoded name', '=?utf-8?Q?J=C3=B6rg?= <joerg@acme.example>'],
    ['in angles', '<bob@acme.example>'],
    ['a list', ['bob@acme.example', 'Ann@partner.example']],
  ])('%s', (_sentence, to) => {
    expect(send({ to })).toBeUndefined();
  });

  test('an operation without recipient rules in the manifest sends to nobody', () => {
    expect(refuseRecipients([], crmRules, call())).toBeUndefined();
  });
});

describe('violating recipients', () => {
  test.each([
    ['another domain', 'x@evil.example'],
    ['a subdomain', 'x@mail.acme.example'],
    ['a longer domain', 'x@acme.example.evil.example'],
    ['a domain that ends alike', 'x@notacme.example'],
    ['a trailing dot', 'x@acme.example.'],
    ['a listed address in another letter case', 'ann@partner.example'],
    ['another address at the domain of a listed address', 'bob@partner.example'],
    ['a look-alike domain', 'x@\u0430cme.example'],
    ['a full-width at sign', 'x\uff20acme.example'],
    ['a letter that folds into ASCII', 'x@acm\u212a.example'],
    ['a name that shows another address', 'bob@acme.example <x@evil.example>'],
    ['a name with an at sign', '"x@evil.example" <bob@acme.example>'],
    ['two addresses without a comma', 'x@evil.example <bob@acme.example>'],
    ['two angles', '<x@evil.example> <bob@acme.example>'],
    ['an angle in a name', '"<x@evil.example>" <bob@acme.example>'],
    ['a quoted local part', '"bob"@acme.example'],
    ['a quote that hides a comma', 'x"@evil.example, bob"@acme.example'],
    ['a comment', 'bob@acme.example (x@evil.example)'],
    ['a comment before', '(x@evil.example,) bob@acme.example'],
    ['a group', 'friends: bob@acme.example, x@evil.example;'],
    ['a semicolon list', 'bob@acme.example; x@evil.example'],
    ['a route', '<@evil.example:bob@acme.example>'],
    ['a percent route', 'x%evil.example@acme.example'],
    ['a bang route', 'evil.example!x@acme.example'],
    ['a domain literal', 'bob@[127.0.0.1]'],
    ['two at signs', 'x@evil.example@acme.example'],
    ['a header in the text', 'bob@acme.example\r\nBcc: x@evil.example'],
    ['a control character', 'bob\u0000@acme.example'],
    ['a no-break space', 'bob@acme.example\u00a0'],
    ['a direction mark in the name', 'Bob\u202e <bob@acme.example>'],
    ['an encoded word that hides an address', '=?utf-8?Q?x=40evil.example=2C?= <bob@acme.example>'],
    [
      'an encoded word in base64 that hides an address',
      `=?utf-8?B?${Buffer.from('x@evil.example,').toString('base64')}?= <bob@acme.example>`,
    ],
    ['an encoded word in an unknown charset', '=?x-unknown?Q?Bob?= <bob@acme.example>'],
    ['a broken encoded word', '=?utf-8?Q?Bob <bob@acme.example>'],
    ['an encoded word for the local part', '=?utf-8?q?bob?=@acme.example'],
    ['no address', 'everyone'],
    ['an empty angle', 'Bob <>'],
    ['a bare domain', '@acme.example'],
    ['a number', 7],
    ['a boolean', true],
    ['an object', { address: 'bob@acme.example' }],
    ['a nested list with one disallowed address', ['bob@acme.example', ['x@evil.example']]],
  ])('%s', (_sentence, to) => {
    expect(send({ to: to as string })).not.toEqual([]);
    expect(send({ to: to as string })).toBeDefined();
  });

  test('a refusal names only the violating recipients, once each, and truncated', () => {
    expect(send({ to: 'bob@acme.example, x@evil.example', cc: ['x@evil.example', 'y@evil.example'] })).toEqual([
      'x@evil.example',
      'y@evil.example',
    ]);
    expect(send({ to: 'x'.repeat(1000) })?.[0]).toHaveLength(321);
    expect(send({ to: 'Bob <BOB@Evil.Example>, <x@EVIL.example>', cc: ['x@evil.example'] })).toEqual([
      'BOB@evil.example',
      'x@evil.example',
    ]);
    expect(send({ to: Array.from({ length: 500 }, (_, i) => `${i}@evil.example`) })).toHaveLength(50);
  });
});

describe('where recipients are found', () => {
  test.each([
    ['an element of a list', { to: 'bob@acme.example', cc: ['bob@acme.example', 'x@evil.example'] }],
    ['a string where a list is expected', { to: 'bob@acme.example', cc: 'x@evil.example' }],
    ['a string where an object is expected', { to: 'bob@acme.example', replyTo: 'x@evil.example' }],
    ['a list where an object is expected', { to: 'bob@acme.example', replyTo: [{ email: 'x@evil.example' }] }],
    ['a nested member', { to: 'bob@acme.example', replyTo: { email: 'x@evil.example' } }],
    ['members of an object where a list is expected', { to: 'bob@acme.example', cc: { a: 'x@evil.example' } }],
    ['a member in another letter case, which some servers accept', { to: 'bob@acme.example', To: 'x@evil.example' }],
  ])('%s', (_sentence, body) => {
    expect(send(body as JsonObject)).toEqual(['x@evil.example']);
  });

  test('recipients in the query string are checked in addition to those in the body', () => {
    expect(send({ to: 'bob@acme.example' }, 'to=x@evil.example')).toEqual(['x@evil.example']);
    expect(send({ to: 'bob@acme.example' }, 'to=Ann%40partner.example')).toBeUndefined();
    // Names and separators that some servers read in another way.
    for (const query of ['x=1;to=x@evil.example', 't.o=x@evil.example', 'to.email=x@evil.example'])
      expect(send({ to: 'bob@acme.example' }, query), query).toEqual(['x@evil.example']);
    expect(send({ to: 'bob@acme.example' }, 'x=1;to=Ann%40partner.example')).toBeUndefined();
  });

  test('an operation with recipient rules must name a recipient, so that one named elsewhere is not missed', () => {
    for (const body of [undefined, {}, { to: null }, { to: '' }, { to: [] }, { cc: [], subject: 'x' }])
      expect(send(body as JsonObject)).toEqual([]);
    expect(send({ cc: ['bob@acme.example'] })).toBeUndefined();
  });

  test('an empty allow-list allows nobody, and a malformed entry matches nothing', () => {
    const body = { to: 'bob@acme.example' };
    const one = (allowed: string[]) =>
      refuseRecipients(allowed, crmRules, call({ method: 'POST', path: '/messages', body }));
    expect(one([])?.violating).toEqual(['bob@acme.example']);
    expect(one(['acme.example', '*', '@', '', '@*.example'])?.violating).toEqual(['bob@acme.example']);
    expect(one(['@acme.example'])).toBeUndefined();
  });

  test('every root field of a GraphQL mutation must name allowed recipients, in the document or in variables', () => {
    const rules = compilePlatformRules({
      kind: 'graphql',
      scopes: { invite: ['mutation invite'] },
      recipients: { 'mutation invite': ['/input/email'] },
    });
    const invite = (query: string, variables: JsonObject = {}) =>
      refuseRecipients(ALLOWED, rules, call({ method: 'POST', path: '/', body: { query, variables } }))?.violating;
    expect(invite('mutation { invite(input: {email: "bob@acme.example"}) { id } }')).toBeUndefined();
    expect(invite('mutation { invite(input: {email: "x@evil.example"}) { id } }')).toEqual(['x@evil.example']);
    expect(invite('mutation($i: I!) { invite(input: $i) { id } }', { i: { email: 'x@evil.example' } })).toEqual([
      'x@evil.example',
    ]);
    expect(
      invite('mutation { a: invite(input: {email: "bob@acme.example"}) { id } b: invite(input: {}) { id } }'),
    ).toEqual([]);
  });
});

describe("a message in Gmail's raw form", () => {
  const rules = compilePlatformRules({
    kind: 'rest',
    scopes: { 'gmail:send': ['POST /messages/send'] },
    recipients: { 'POST /messages/send': [{ pointer: '/raw', format: 'rfc822-base64url' }] },
  });
  const base64url = (text: string | Uint8Array) => Buffer.from(text as string).toString('base64url');
  const sendRaw = (raw: string) =>
    refuseRecipients(ALLOWED, rules, call({ method: 'POST', path: '/messages/send', body: { raw } }))?.violating;
  const message = (...lines: string[]) => sendRaw(base64url([...lines, '', 'To: nobody@evil.example'].join('\r\n')));

  test('every recipient line is checked, in any notation', () => {
    expect(message('To: bob@acme.example', 'Subject: x')).toBeUndefined();
    expect(message('To: bob@acme.example', 'Bcc: x@evil.example')).toEqual(['x@evil.example']);
    expect(message('To: bob@acme.example', 'bCC : x@evil.example')).toEqual(['x@evil.example']);
    expect(message('To: bob@acme.example', 'To: x@evil.example')).toEqual(['x@evil.example']);
    expect(message('To: bob@acme.example,', ' x@evil.example')).toEqual(['x@evil.example']);
    expect(message('Resent-To: x@evil.example', 'To: bob@acme.example')).toEqual(['x@evil.example']);
    expect(sendRaw(base64url('To: bob@acme.example\nCc: x@evil.example\n\nhi'))).toEqual(['x@evil.example']);
    expect(sendRaw(`${base64url('To: bob@acme.example')}`)).toBeUndefined();
    expect(message('To: =?utf-8?Q?J=C3=B6rg?= <joerg@acme.example>')).toBeUndefined();
    expect(message('To: J\u00f6rg <joerg@acme.example>')).toBeUndefined();
  });

  test('a message whose header parsers may read differently is refused', () => {
    const unreadable = ['a message that cannot be read'];
    expect(message('To: bob@acme.example', 'Bcc x@evil.example')).toEqual(unreadable);
    for (const end of '\r\0\x01\v\f\x1b\x1c\x1d\x1e\x1f\x7f\x85\u2028\u2029')
      expect(message(`To: bob@acme.example${end}Bcc: x@evil.example`), JSON.stringify(end)).toEqual(unreadable);
    expect(message('To: bob@acme.example', '   ', 'Bcc: x@evil.example')).toEqual(unreadable);
    expect(message(' To: bob@acme.example')).toEqual(unreadable);
    expect(message('To: bob@acme.example\0')).toEqual(unreadable);
    expect(sendRaw(base64url(Buffer.from([84, 111, 58, 0xff, 64, 10, 10])))).toEqual(unreadable);
    expect(sendRaw('!!!')).toEqual(unreadable);
    expect(sendRaw('a+b/')).toEqual(unreadable);
    expect(message('Subject: nobody')).toEqual([]);
    expect(sendRaw('')).toEqual([]);
    expect(sendRaw(base64url('\r\nTo: bob@acme.example'))).toEqual([]);
  });

  test('the body of the message is not parsed as its header, and may be binary', () => {
    const binary = Buffer.concat([Buffer.from('To: bob@acme.example\r\n\r\n'), Buffer.from([0, 255, 13, 1])]);
    expect(readMessageRecipients(binary.toString('base64url'))?.map(({ text }) => text)).toEqual(['bob@acme.example']);
  });
});

describe('addresses', () => {
  test('kinds of entries of an allow-list', () => {
    expect(recipientEntryKind('ann@x.example')).toBe('address');
    for (const entry of ['@x.example', '@x']) expect(recipientEntryKind(entry)).toBe('domain');
    for (const entry of ['C024BE91L', '557058:f58131cb-b67d', 'jira users', '#general', 'x.example'])
      expect(recipientEntryKind(entry)).toBe('id');
    for (const entry of [
      '@',
      '*',
      'C*',
      '@*.example',
      '*@x.example',
      'a*@x.example',
      'a b@x',
      '',
      '"a"@x.example',
      ' C1',
      'C1 ',
      'C\u200b1',
      'C\n1',
    ])
      expect(recipientEntryKind(entry)).toBeUndefined();
  });

  test('only a complete address is parsed as one', () => {
    const hostile = fc.string({ unit: fc.constantFrom(...'ab.@<>",;:()\\ =?%!\t\u00e9\r'), maxLength: 30 });
    fc.assert(
      fc.property(hostile, (text) => {
        for (const { address } of readAddresses(text)) {
          if (address === undefined) continue;
          expect(readAddress(`${address.local}@${address.domain}`)).toEqual(address);
          expect(text.split('@').length).toBeGreaterThanOrEqual(2);
        }
        // No second at sign may remain: the address would be another one.
        const read = readAddresses(text);
        if (read.every(({ address }) => address !== undefined)) expect(text.split('@').length - 1).toBe(read.length);
      }),
      { numRuns: sized(1_500, 5_000) },
    );
  });

  test('long hostile lists are parsed in linear time', () => {
    const started = performance.now();
    for (const piece of ['"', '<', 'a@', '=?', ' ', ',', '\\"', 'a.', '=?a?Q?']) readAddresses(piece.repeat(200_000));
    readMessageRecipients(base64(`To: ${' \r\n '.repeat(50_000)}`));
    expect(performance.now() - started).toBeLessThan(scaledTimeout(3_000));
  });
});

const base64 = (text: string) => Buffer.from(text).toString('base64url');

describe('the intersection of two allow-lists', () => {
  test.each([
    [['@x.example'], ['ann@x.example'], ['ann@x.example']],
    [['ann@x.example'], ['@X.example'], ['ann@x.example']],
    [['@x.example'], ['@X.example'], ['@x.example', '@X.example']],
    [['@x.example'], ['@y.example'], []],
    [
      ['@x.example', 'bob@y.example'],
      ['@y.example', '@x.example'],
      ['@x.example', 'bob@y.example'],
    ],
    [[], ['@x.example'], []],
    [['C1', '@x.example'], ['C1', 'c1', 'x.example'], ['C1']],
    [['*'], ['*', 'C1'], []],
  ])('%j and %j: %j', (a, b, expected) => {
    expect(intersectRecipients(a, b)).toEqual(expected);
  });
});
