import { describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../broker/policy/facts.ts';
import { compilePlatformRules } from '../../broker/policy/operation.ts';
import type { RecipientPointerSource } from '../../broker/policy/platform-rules.ts';
import { refuseRecipients } from '../../broker/policy/recipients.ts';
import { call } from './world.ts';

/** The violating recipients; `[]` when there is no recipient to check, undefined when the call may be sent. */
function judge(
  pointers: readonly RecipientPointerSource[],
  allowed: readonly string[],
  body: JsonValue | undefined,
  query = '',
): string[] | undefined {
  const rules = compilePlatformRules({ kind: 'rest', scopes: {}, recipients: { 'POST /send': pointers } });
  const sent = call({ method: 'POST', path: '/send', body: body as JsonObject | undefined, query });
  return refuseRecipients(allowed, rules, sent)?.violating;
}

describe('ids that only the platform can interpret', () => {
  const channel = { pointer: '/channel', format: 'id' } as const;
  const users = { pointer: '/users', format: 'ids' } as const;
  const ALLOWED = ['C024BE91L', 'U1', 'U2', 'jira, users', '@acme.example', 'ann@acme.example', '*'];

  test.each<[RecipientPointerSource, JsonObject]>([
    [channel, { channel: 'C024BE91L' }],
    [channel, { channel: ['C024BE91L', 'U1'] }],
    [channel, { channel: 'jira, users' }],
    [users, { users: 'U1' }],
    [users, { users: 'U1,U2, U1,' }],
    [users, { users: ['U1', 'U2,U1'] }],
  ])('%j allows %j', (pointer, body) => {
    expect(judge([pointer], ALLOWED, body)).toBeUndefined();
  });

  test.each<[RecipientPointerSource, JsonObject, string[]]>([
    [channel, { channel: 'c024be91l' }, ['c024be91l']],
    [channel, { channel: 'C024BE91' }, ['C024BE91']],
    [channel, { channel: 'C024BE91L ' }, ['C024BE91L ']],
    [channel, { channel: 'C024BE91L\n' }, ['C024BE91L\n']],
    [channel, { channel: 'U1,U2' }, ['U1,U2']],
    [channel, { channel: '*' }, ['*']],
    [channel, { channel: ' ' }, [' ']],
    // An address or a domain in the list does not match an id, and an id does not match an address.
    [channel, { channel: 'ann@acme.example' }, ['ann@acme.example']],
    [channel, { channel: '@acme.example' }, ['@acme.example']],
    ['/channel', { channel: 'U1' }, ['U1']],
    [channel, { channel: 7 }, ['7']],
    [channel, { channel: { id: 'U1' } }, ['{"id":"U1"}']],
    [users, { users: 'U1,U3' }, ['U3']],
    [users, { users: 'U1;U2' }, ['U1;U2']],
    [users, { users: ['U1', 'U3'] }, ['U3']],
    [users, { users: 'U1,u1@acme.example' }, ['u1@acme.example']],
  ])('%j refuses %j', (pointer, body, violating) => {
    expect(judge([pointer], ALLOWED, body)).toEqual(violating);
  });

  test('a call must name at least one recipient', () => {
    for (const body of [undefined, {}, { channel: '' }, { channel: null }, { channel: [] }, { users: ' , ' }])
      expect(judge([channel, users], ALLOWED, body)).toEqual([]);
    expect(judge([channel, users], ALLOWED, { users: 'U1' })).toBeUndefined();
  });

  test("recipients in the query string are parsed in the pointer's format", () => {
    expect(judge([channel], ALLOWED, { channel: 'U1' }, 'channel=U2')).toBeUndefined();
    expect(judge([channel], ALLOWED, { channel: 'U1' }, 'channel=U3')).toEqual(['U3']);
    expect(judge([users], ALLOWED, { users: 'U1' }, 'users=U1%2CU3')).toEqual(['U3']);
  });
});

describe('optional recipients', () => {
  const attendees = { pointer: '/attendees/*/email', optional: true };
  const receipt = { pointer: '/receipt_email', optional: true };
  const ALLOWED = ['@acme.example'];

  test('a call that names nobody is allowed', () => {
    for (const body of [
      undefined,
      {},
      { attendees: null },
      { attendees: [] },
      { attendees: '' },
      { receipt_email: '' },
    ])
      expect(judge([attendees, receipt], [], body)).toBeUndefined();
    expect(
      judge([{ pointer: '/action/forward', optional: true }], [], { action: { addLabelIds: ['X'] } }),
    ).toBeUndefined();
  });

  test('a named recipient is checked', () => {
    const named = (email: string) => judge([attendees], ALLOWED, { attendees: [{ email }] });
    expect(named('ann@acme.example')).toBeUndefined();
    expect(named('x@evil.example')).toEqual(['x@evil.example']);
    expect(judge([receipt], ALLOWED, {}, 'receipt_email=x@evil.example')).toEqual(['x@evil.example']);
    expect(judge([receipt], ALLOWED, {}, 'receipt_email=')).toBeUndefined();
  });

  test.each<[JsonValue, string[]]>([
    [7, ['7']],
    [true, ['true']],
    [false, ['false']],
    ['everyone', ['everyone']],
    [' , ', ['" , "']],
    [{}, ['{}']],
    [{ email: 'x@evil.example' }, ['x@evil.example']],
    [{ a: {} }, ['{}']],
    [[null], ['null']],
    [[''], ['""']],
    [[[]], ['[]']],
    [[{}], ['{}']],
    [[{ id: 'p1' }], ['{"id":"p1"}']],
    [[{ email: null }], ['null']],
    [[{ email: '' }], ['""']],
    [[{ email: [] }], ['[]']],
    [[{ email: { a: 'x' } }], ['{"a":"x"}']],
    [[{ email: 'ann@acme.example' }, { id: 'p1' }], ['{"id":"p1"}']],
  ])('a value of an unexpected form is refused: %j', (value, violating) => {
    expect(judge([attendees], ALLOWED, { attendees: value })).toEqual(violating);
  });

  test('with a required pointer as well, that one must name somebody', () => {
    const pointers = ['/to', { pointer: '/cc/*', optional: true }];
    expect(judge(pointers, ALLOWED, { to: 'ann@acme.example' })).toBeUndefined();
    expect(judge(pointers, ALLOWED, { to: 'ann@acme.example', cc: ['bob@acme.example'] })).toBeUndefined();
    expect(judge(pointers, ALLOWED, { cc: ['bob@acme.example'] })).toEqual([]);
    expect(judge(pointers, ALLOWED, {})).toEqual([]);
  });

  test('a message without recipients is not treated as absent', () => {
    const raw = { pointer: '/raw', format: 'rfc822-base64url', optional: true } as const;
    const encoded = Buffer.from('Subject: x\r\n\r\nhello').toString('base64url');
    expect(judge([raw], ALLOWED, { raw: encoded })).toEqual([`"${encoded}"`]);
    expect(judge([raw], ALLOWED, {})).toBeUndefined();
  });
});
