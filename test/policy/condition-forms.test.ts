/**
 * Conditions on a form body, in which every value is a text: a text in the plain form of a number is compared as a number. And conditions on members of any
 * body for which servers accept more than one spelling.
 */
import { describe, expect, test } from 'vitest';
import { compileCondition, conditionInput } from '../../broker/policy/conditions/condition.ts';
import type { JsonObject } from '../../broker/policy/facts.ts';
import { agent, call, NOW } from './world.ts';

function evaluate(source: string, body: JsonObject, isForm = true, query = '') {
  const compiled = compileCondition(source);
  if (!compiled.ok) throw new Error(compiled.error);
  const concrete = call({ method: 'POST', body, query, ...(isForm && { isForm: true as const }) });
  const input = conditionInput(agent(), { platformId: 'crm', scope: 'crm:x', call: concrete }, NOW);
  return compiled.condition.evaluate(input);
}

/** The results when servers read a value differently. */
const BOTH = { ok: true, value: false, others: [{ ok: true, value: true }] };

const amount = (text: string): JsonObject => ({ amount: text, inner: { amount: text }, list: [text] });

describe.each(['request.body.amount', 'request.body.inner.amount', 'request.body.list[0]'])('%s', (place) => {
  test.each([
    [`${place} > 1000`, '1001', true],
    [`${place} > 1000`, '1000', false],
    [`${place} >= 1000`, '1000', true],
    [`1000 < ${place}`, '1001', true],
    [`${place} <= 10.5`, '10.50', true],
    [`${place} < 0`, '-1', true],
    [`${place} == 13`, '13', true],
    [`13 == ${place}`, '13', true],
    [`${place} == "13"`, '13', true],
    [`${place} != 13`, '12', true],
    [`${place} == 13`, '14', false],
    [`${place} in [12, 13]`, '13', true],
  ])('%s of %s is %s', (source, text, value) => {
    expect(evaluate(source, amount(text))).toEqual({ ok: true, value });
    // A number sent in JSON is the same text in a form.
    if (String(Number(text)) === text)
      expect(evaluate(source, JSON.parse(JSON.stringify(amount(text)).replaceAll(/"(-?[\d.]+)"/g, '$1')))).toEqual({
        ok: true,
        value,
      });
  });

  test.each(['', 'much', '1e9', '0x10', ' 5', '5 ', '٥', '12345678901234567890'])(
    '%j is not read as a number',
    (text) => {
      expect(evaluate(`${place} > 1`, amount(text))).toMatchObject({ ok: false });
      expect(evaluate(`${place} == 5`, amount(text))).toEqual(BOTH);
    },
  );
});

describe.each([
  ['JSON', false],
  ['a form', true],
])('values in %s that lenient servers convert to another type', (_, isForm) => {
  test.each<[string, JsonObject['x']]>([
    ['== true', 'TRUE'],
    ['== true', 'on'],
    ['== true', '1'],
    ['== true', 1],
    ['== false', '0'],
    ['== false', 'no'],
    ['== false', 0],
    ['== 1000', '1e3'],
    ['== 1000', ' 1000 '],
    ['== 1000', '01000'],
    ['in [999, 1000]', '+1000'],
    ['== 255', '0xff'],
    ['== true', 'truth'],
    ['== true', 2],
    ['== true', ['ann']],
    ['== true', {}],
    ['== true', `true${' '.repeat(40)}`],
    ['== false', 'nothing'],
    ['== false', '0.0'],
    ['== 1000', '1000 EUR'],
    ['== 1000u', '01000'],
    ['== -5', `-${'0'.repeat(60)}5`],
    ['== 0', ''],
    ['in ["a", 2]', true],
    ['== "eve"', ['eve']],
    ['== "eve"', { 0: 'eve' }],
    ['== "eve"', [...Array.from({ length: 60 }, () => 'ann'), 'eve']],
    ['== "eve"', ['ann', 'eve']],
    ['== 7', ['7']],
    ['== ["eve"]', { 0: 'eve' }],
    ['== ["ann", "eve"]', { 3: 'ann', 7: 'eve' }],
    ['in [["ann"], ["eve"]]', { 0: 'eve' }],
    ['== [["eve"]]', [{ 0: 'eve' }]],
  ])('`%s` on %j: the result for lenient servers is returned, too', (comparison, x) => {
    const source = `request.body.x ${comparison}`;
    expect(evaluate(source, { x } as JsonObject, isForm)).toEqual(BOTH);
    expect(evaluate(`!(${source})`, { x } as JsonObject, isForm)).toEqual(BOTH);
  });

  test.each<[string, JsonObject['x']]>([
    ['== 1000', '999'],
    ['== 1000', '1000.5'],
    ['== "eve"', 5],
    ['== "eve"', true],
    ['== "eve"', ['ann', { to: 'eve' }]],
    ['== "eve"', { to: 'eve' }],
    ['== ["eve"]', ['ann']],
    ['== ["eve"]', { 0: 'ann' }],
    ['== ["eve"]', { 0: 'eve', 1: 'eve' }],
    ['== ["eve"]', { 0: 'eve', to: 'eve' }],
    ['== []', {}],
    ['== null', 'null'],
    ['== "ann"', 'Ann'],
  ])('`%s` on %j has one result for all servers', (comparison, x) => {
    expect(evaluate(`request.body.x ${comparison}`, { x } as JsonObject, isForm)).toEqual({ ok: true, value: false });
  });
});

test.each<[string, JsonObject['x'], string, boolean]>([
  ['== true', true, 'true', true],
  ['== true', false, 'false', false],
  ['!= true', true, 'true', false],
  ['== false', false, 'false', true],
  ['in [true, 1]', true, 'true', true],
  ['== "true"', true, 'true', true],
  ['== null', null, '', true],
  ['!= null', null, '', false],
  ['== null', 'x', 'x', false],
])('`%s` on %j, and on its form encoding %j, is %s', (comparison, value, text, result) => {
  for (const x of [value, text])
    expect(evaluate(`request.body.x ${comparison}`, { x } as JsonObject)).toEqual({ ok: true, value: result });
  if (typeof value !== 'string' && !comparison.includes('"'))
    expect(evaluate(`request.body.x ${comparison.replace('!=', '==')}`, { x: text }, false)).toMatchObject({
      ok: true,
      value: false,
    });
});

test.each(['== true', '== false', '== 0'])(
  '`%s` on null in a form is evaluated on the empty text that is sent',
  (comparison) => {
    const source = `request.body.x ${comparison}`;
    expect(evaluate(source, { x: null }, false)).toEqual({ ok: true, value: false });
    for (const x of [null, '']) expect(evaluate(source, { x })).toEqual(BOTH);
  },
);

test('in JSON a text is never compared as a number', () => {
  expect(evaluate('request.body.amount > 1', amount('5'), false)).toMatchObject({ ok: false });
  expect(evaluate('request.body.amount == 5', amount('5'), false)).toMatchObject({ ok: true, value: false });
});

describe.each([
  ['JSON', false],
  ['a form', true],
])('other spellings of members in %s', (_, isForm) => {
  test.each<[string, JsonObject]>([
    ['has(request.body.admin) && request.body.admin', { Admin: true }],
    ['request.body.amount > 5', { amount: 1, Amount: 100 }],
    ['has(request.body.emailAddress) && request.body.emailAddress == "eve"', { email_address: 'eve' }],
    ['request.body.order.amount > 5', { order: { amount: 1, AMOUNT: 100 } }],
    ['has(request.body.order.rush)', { order: { Rush: 1 } }],
    ['request.body.items.exists(item, has(item.to) && item.to == "eve")', { items: [{ to: 'ann', To: 'eve' }] }],
    ['request.body.items[0].list[0].to == "eve"', { items: [{ list: [{ to: 'ann', tO: 'eve' }] }] }],
    ['"admin" in request.body', { ADMIN: true }],
  ])('%s on %j: the result for lenient servers is returned, too', (source, body) => {
    const { others = [], ...exactly } = evaluate(source, body, isForm);
    expect(exactly).toEqual({ ok: true, value: false });
    expect(others.some((one) => !one.ok || one.value)).toBe(true);
  });

  test.each<[string, JsonObject]>([
    ['has(request.body.admin)', { administrator: true, _admin: true, items: [{ Admin: 1 }] }],
    ['request.body.amount > 5', { amount: 1, Total: 100 }],
    ['request.body.items.exists(item, item.to == "eve")', { items: [{ to: 'ann', From: 'eve' }] }],
  ])('%s on %j has one result for all servers', (source, body) => {
    expect(evaluate(source, body, isForm)).toEqual({ ok: true, value: false });
  });

  test('a query parameter may be read as a member of the body', () => {
    const source = 'has(request.body.channel) && request.body.channel == "C2"';
    expect(evaluate(source, { text: 'x' }, isForm, 'channel=C2')).toMatchObject({
      others: [{ ok: true, value: true }],
    });
    expect(evaluate(source, { channel: 'C1' }, isForm, 'Channel=C2')).toMatchObject({
      ok: true,
      value: false,
      others: [{ ok: false }],
    });
    expect(evaluate(source, { text: 'x' }, isForm, 'limit=5')).toEqual({ ok: true, value: false });
  });
});
