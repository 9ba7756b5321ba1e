/** Conditions on a body that is a form, in which every value is a text: what is plainly a number is compared as one. */
import { describe, expect, test } from 'vitest';
import { compileCondition, conditionInput } from '../../broker/policy/condition.ts';
import type { JsonObject } from '../../broker/policy/facts.ts';
import { agent, call, NOW } from './world.ts';

function evaluate(source: string, body: JsonObject, isForm = true) {
  const compiled = compileCondition(source);
  if (!compiled.ok) throw new Error(compiled.error);
  const concrete = call({ method: 'POST', body, ...(isForm && { isForm: true as const }) });
  const input = conditionInput(agent(), { platformId: 'crm', scope: 'crm:x', call: concrete }, NOW);
  return compiled.condition.evaluate(input);
}

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
    [`${place} == 13`, '0013', false],
    [`${place} in [12, 13]`, '13', true],
  ])('%s of %s is %s', (source, text, value) => {
    expect(evaluate(source, amount(text))).toEqual({ ok: true, value });
    // A number that was sent as one is the same on the wire.
    if (String(Number(text)) === text)
      expect(evaluate(source, JSON.parse(JSON.stringify(amount(text)).replaceAll(/"(-?[\d.]+)"/g, '$1')))).toEqual({
        ok: true,
        value,
      });
  });

  test.each(['', 'much', '1e9', '0x10', ' 5', '5 ', '٥', '12345678901234567890'])('%j is no number', (text) => {
    expect(evaluate(`${place} > 1`, amount(text))).toMatchObject({ ok: false });
    expect(evaluate(`${place} == 5`, amount(text))).toEqual({ ok: true, value: false });
  });
});

test('in JSON a text is never a number', () => {
  expect(evaluate('request.body.amount > 1', amount('5'), false)).toMatchObject({ ok: false });
  expect(evaluate('request.body.amount == 5', amount('5'), false)).toEqual({ ok: true, value: false });
});
