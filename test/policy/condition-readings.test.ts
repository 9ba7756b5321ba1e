/**
 * Conditions on calls that servers read differently: every combination of readings is evaluated, since a server may be strict with one name or value and
 * lenient with the next.
 */
import { describe, expect, test } from 'vitest';
import { compileAmount, compileCondition, conditionInput } from '../../broker/policy/conditions/condition.ts';
import type { JsonObject } from '../../broker/policy/facts.ts';
import { agent, call, NOW } from './world.ts';

function resultsOf(compiled: ReturnType<typeof compileCondition | typeof compileAmount>, body: JsonObject, query = '') {
  if (!compiled.ok) throw new Error(compiled.error);
  const ask = { platformId: 'crm', scope: 'crm:x', call: call({ method: 'POST', body, query }) };
  const { others = [], ...exactly } = compiled.condition.evaluate(conditionInput(agent(), ask, NOW));
  return [exactly, ...others].map((one) => (one.ok ? one.value : one.error));
}

/** All results that servers may reach: the first is that of the exact reading. */
const evaluate = (source: string, body: JsonObject, query?: string) => resultsOf(compileCondition(source), body, query);

const PURGE = '!has(request.body.dry_run) && has(request.body.purge) && request.body.purge == true';

test.each<[string, JsonObject, string?]>([
  [PURGE, { purge: 'true' }],
  [PURGE, { purge: 'true', DRY_RUN: true }],
  [PURGE, { purge: 'true' }, 'dry_run=1'],
  [PURGE, { Purge: true, Dry_Run: true }],
  [
    'request.body.publish == true && request.body.visibility != "private"',
    { publish: 'true', visibility: ['private'] },
  ],
  ['request.body.amount == 1000 && !(request.body.test == true)', { amount: '1000', test: 'yes' }],
  ['request.body.o.exists(o, !has(o.dry) && has(o.to) && o.to == "eve")', { o: [{ To: 'eve', Dry: 1 }] }],
  ['request.body.x == true ? !(request.body.y == true) : false', { x: 'true', y: 'true' }],
  ['[1, 2].exists(i, request.body.x == true && request.body.y != true)', { x: 1, y: 1 }],
])('%s on %j is true for some servers only', (source, body, query) => {
  expect(evaluate(source, body, query)).toEqual([false, true]);
  expect(evaluate(`!(${source})`, body, query).sort()).toEqual([false, true]);
});

test.each<[string, JsonObject, boolean]>([
  [PURGE, { purge: true }, true],
  [PURGE, { purge: 'true', dry_run: 1 }, false],
  ['request.body.x == true && request.body.y == "b"', { x: 'true', y: 'a' }, false],
  ['request.body.x == true || request.body.y == "a"', { x: 'true', y: 'a' }, true],
  ['[request.body.x, "z"] == [true, "y"]', { x: 'true' }, false],
  ['request.body.x in [true, "true"]', { x: 'true' }, true],
  ['has(request.body.x) && has(request.body.x) == has(request.body.x)', { x: 1, X: 1 }, true],
  ['has(request.body.limit) && request.body.limit > 10', { Limit: 9 }, false],
])('%s on %j has the same result for all servers', (source, body, result) => {
  expect(evaluate(source, body)).toEqual([result]);
});

describe('many names that servers read differently', () => {
  const names = (n: number) => Array.from({ length: n }, (_, i) => `n${i}`);
  const sum = (n: number) => names(n).map((name) => `has(request.body.${name})`);
  const body = (n: number) => Object.fromEntries(names(n).map((name) => [name.toUpperCase(), 1]));

  test('are evaluated in each combination, up to a limit, beyond which the condition fails', () => {
    const odd = (n: number) => sum(n).reduce((a, b) => `(${a}) != ${b}`);
    expect(evaluate(odd(6), body(6))).toEqual([false, true]);
    expect(evaluate(odd(7), body(7))).toEqual([
      false,
      true,
      'the call has too many names that servers read differently',
    ]);
    expect(evaluate(`false && (${odd(7)})`, body(7))).toEqual([false]);
  });

  test('are read in the same way in all members of a list', () => {
    const to = Array.from({ length: 50 }, () => ({ To: 'ann' }));
    expect(evaluate('request.body.to.exists(t, has(t.to) && t.to == "eve")', { to })).toEqual([false]);
  });

  test('cost no more than two evaluations together', () => {
    const l = Array.from({ length: 3000 }, (_, i) => `t${i}`);
    const source = `request.body.l.all(i, i != "eve") && (${sum(6).join(' || ')})`;
    expect(evaluate(source, { l, ...body(6) })).toEqual([false, true, 'the condition costs too much on this call']);
  });
});

test('of all readings, the largest amount counts', () => {
  const amount = compileAmount('has(request.body.dry_run) ? 0 : (has(request.body.amount) ? request.body.amount : 1)');
  expect(resultsOf(amount, { amount: 5 })).toEqual([5]);
  expect(resultsOf(amount, { Amount: 5, DRY_RUN: 1 })).toEqual([1, 5, 0]);
  const unknown = compileAmount('request.body.free == true ? 0 : 5');
  expect(resultsOf(unknown, { free: true })).toEqual([0]);
  expect(resultsOf(unknown, { free: 'true' })).toEqual([expect.stringContaining('servers differ')]);
});

describe('an object where servers may see a list', () => {
  const AS_LIST = [expect.stringMatching(/servers may (see|read as) a list/)];

  test.each<[string, JsonObject]>([
    ['request.body.to.exists(a, a == "eve")', { to: { 0: 'eve' } }],
    ['request.body.to.all(a, a.endsWith("@acme.example"))', { to: { 'x@acme.example': 'eve@evil.example' } }],
    ['request.body.to.map(a, a) == ["0"]', { to: { 0: 'eve' } }],
    ['request.body.m.to.exists_one(a, a == "eve")', { m: { to: {} } }],
    ['"admin" in request.body.roles', { roles: { 0: 'admin' } }],
    ['1 in request.body.roles', { roles: { 0: 1 } }],
    ['request.body.l.exists(m, "x" in m)', { l: [{ y: 'x' }] }],
  ])('%s on %j fails', (source, body) => {
    expect(evaluate(source, body)).toEqual(AS_LIST);
    expect(evaluate(`!(${source})`, body)).toEqual(AS_LIST);
  });

  test.each<[string, JsonObject]>([
    ['request.body.exists(name, name == "to")', { to: { 0: 'eve' } }],
    ['"to" in request.body && !("cc" in request.query)', { to: {} }],
    ['"x-y" in request.body.to && request.body.to["x-y"] == "z"', { to: { 'x-y': 'z' } }],
    ['request.body.to.exists(m, "x-y" in m && m["x-y"] == 1)', { to: [{ 'x-y': 1 }] }],
    ['"admin" in request.body.to && request.body.to.exists(to, to == "admin")', { to: ['admin'] }],
    ['["a", "b"].all(a, a in {"a": 1, "b": 2})', {}],
  ])('%s on %j has one result', (source, body) => expect(evaluate(source, body)).toEqual([true]));
});

describe('loops over names of members', () => {
  test.each<[string, JsonObject, string?]>([
    ['request.body.exists(name, name == "public")', { Public: 1 }],
    ['request.body.exists(name, name == "public")', { a: 1 }, 'public=1'],
    ['request.body.exists(name, name == "emailAddress")', { email_address: 1 }],
    ['request.body.exists(name, name.startsWith("admin"))', { AdminOf: 1 }],
    ['!request.body.exists(n, n == "dry_run") && request.body.exists(n, n == "purge")', { Purge: 1, DRY_RUN: 1 }],
  ])('%s on %j also visits the spellings of lenient servers', (source, body, query) => {
    expect(evaluate(source, body, query)).toEqual([false, true]);
  });

  test.each<[string, JsonObject]>([
    ['request.body.all(name, name in ["emailAddress", "name"])', { emailAddress: 1, name: 1 }],
    ['request.body.all(name, !name.startsWith("x"))', { fooBar: 1, barFoo: 2, some_thing: 3 }],
    ['request.body.filter(name, name == "amount").size() == 1', { amount: 1, Total: 1 }],
  ])('%s on %j has one result', (source, body) => expect(evaluate(source, body)).toEqual([true]));
});
