/** Conditions on GraphQL calls see all arguments, however the agent names its variables or writes values into the document. */
import { describe, expect, test } from 'vitest';
import { compileCondition, conditionInput } from '../../broker/policy/conditions/condition.ts';
import type { JsonObject } from '../../broker/policy/facts.ts';
import { compilePlatformRules } from '../../broker/policy/operation.ts';
import { agent, call, graphqlCall, NOW } from './world.ts';

const rules = compilePlatformRules({ kind: 'graphql', scopes: { 'l:read': ['query *'], 'l:pay': ['mutation pay'] } });
const COMPILED = new Map<string, Extract<ReturnType<typeof compileCondition>, { ok: true }>['condition']>();

function evaluate(source: string, concrete = call()) {
  const compiled = compileCondition(source);
  if (!compiled.ok) throw new Error(compiled.error);
  COMPILED.set(source, compiled.condition);
  return compiled.condition.evaluate(
    conditionInput(agent(), { platformId: 'l', scope: 'l:pay', call: concrete }, NOW, rules),
  );
}
const of = (source: string, query: string, variables?: JsonObject) =>
  evaluate(source, graphqlCall({ query, ...(variables && { variables }) }));

/** Each spelling pays 5000 to eve, on every server. */
const SPELLINGS: [string, string, JsonObject?][] = [
  ['variables', 'mutation ($input: In!) { pay(input: $input) { id } }', { input: { amount: 5000, to: 'eve' } }],
  ['a variable of another name', 'mutation ($a: In!) { pay(input: $a) { id } }', { a: { amount: 5000, to: 'eve' } }],
  ['literal values in the document', 'mutation { pay(input: { amount: 5000, to: "eve" }) { id } }'],
  [
    'variables for parts of the argument',
    'mutation ($n: Int, $to: ID) { pay(input: { amount: $n, to: $to }) { id } }',
    { n: 5000, to: 'eve' },
  ],
  [
    'the default value of a variable',
    'mutation ($input: In = { amount: 5000, to: "eve" }) { pay(input: $input) { id } }',
  ],
  ['an alias', 'mutation { amountless: pay(input: { amount: 5000, to: "eve" }) { id } }'],
  [
    'a fragment',
    'mutation ($input: In) { ...f } fragment f on M { pay(input: { amount: 5000, to: "eve" }) { id } }',
    { input: { amount: 1, to: 'ann' } },
  ],
  [
    'a second field',
    'mutation ($input: In) { a: pay(input: $input) { id } b: pay(input: { amount: 5000, to: "eve" }) { id } }',
    { input: { amount: 1, to: 'ann' } },
  ],
];

describe('request.graphql', () => {
  const LARGE = 'request.graphql.fields.exists(f, f.name == "pay" && f.arguments.input.amount > 1000)';
  test.each(SPELLINGS)('contains arguments given by %s', (_, query, variables) => {
    expect(of(LARGE, query, variables)).toEqual({ ok: true, value: true });
    expect(of('request.graphql.fields.all(f, f.arguments.input.to == "ann")', query, variables)).toEqual({
      ok: true,
      value: false,
    });
  });

  test('contains the operation, and the fields by their own names without aliases', () => {
    expect(of('request.graphql.operation == "query"', '{ a: viewer { id } }')).toEqual({ ok: true, value: true });
    expect(of('request.graphql.fields.map(f, f.name) == ["viewer", "team"]', '{ a: viewer team }').ok).toBe(true);
    expect(of('request.graphql.fields.map(f, f.name) == ["viewer", "team"]', '{ a: viewer team }')).toEqual({
      ok: true,
      value: true,
    });
  });

  test('an argument whose variable has no value is null', () => {
    expect(
      of('request.graphql.fields[0].arguments.input == null', 'mutation ($input: In) { pay(input: $input) }'),
    ).toEqual({ ok: true, value: true });
  });

  test('exists on GraphQL calls only', () => {
    expect(evaluate('has(request.graphql)', call({ method: 'POST', path: '/x', body: { query: '{ a }' } }))).toEqual({
      ok: true,
      value: false,
    });
    expect(of('has(request.graphql)', '{ viewer }')).toEqual({ ok: true, value: true });
  });

  test('an unknown member does not compile, and reading it without has() is reported', () => {
    expect(compileCondition('request.graphql.field == "x"')).toMatchObject({
      ok: false,
      error: expect.stringContaining('there is no member `field`; there are operation, fields'),
    });
    evaluate('request.graphql.operation == "query"');
    expect(COMPILED.get('request.graphql.operation == "query"')?.readsWithoutHas).toEqual(['request.graphql']);
  });
});

describe('request.body.variables', () => {
  const GUARD =
    'has(request.body.variables) && has(request.body.variables.input) && request.body.variables.input.amount > 1000';
  test.each(SPELLINGS.slice(0, 1))('contains arguments given by %s', (_, query, variables) => {
    expect(of(GUARD, query, variables)).toEqual({ ok: true, value: true });
    expect(of('request.body.variables.input.to == "eve"', query, variables)).toEqual({ ok: true, value: true });
  });

  test.each(SPELLINGS.slice(1))('is an error with %s, which decides against the agent', (_, query, variables) => {
    for (const source of [GUARD, '!has(request.body.variables.input)', 'request.body["variables"].size() == 0'])
      expect(of(source, query, variables)).toMatchObject({
        ok: false,
        error: expect.stringContaining('does not give each argument by a variable of the same name'),
      });
  });

  test('is an error for other spellings of its name, too', () => {
    const { others } = of('has(request.body.Variables) && has(request.body.Variables.input)', SPELLINGS[2]?.[1] ?? '');
    expect(others).toMatchObject([{ ok: false }]);
  });

  test('unused defaults, directives, and fields without arguments do not make it an error', () => {
    const query = `query ($id: ID!, $first: Int = 50, $all: Boolean!) {
      team(id: $id) { name issues(first: $first) @include(if: $all) { nodes { id @skip(if: false) } } }
    }`;
    const variables = { id: 't1', first: 10, all: true };
    expect(of('request.body.variables.id == "t1"', query, variables)).toEqual({ ok: true, value: true });
    expect(of('request.body.variables.id == "t1"', query, { id: 't1', all: true })).toMatchObject({ ok: false });
  });

  test('arguments of a field below the root are checked, too', () => {
    const query = '{ viewer { team(id: "t2") { name } } }';
    expect(of('has(request.body.variables) && has(request.body.variables.id)', query, { id: 't1' })).toMatchObject({
      ok: false,
    });
  });

  test('is an ordinary member on calls without a GraphQL document', () => {
    const plain = call({ method: 'POST', path: '/x', body: { query: '{ a(b: 1) }', variables: { amount: 2000 } } });
    expect(evaluate('request.body.variables.amount > 1000', plain)).toEqual({ ok: true, value: true });
  });

  test('the document itself can be read on every call', () => {
    expect(of('request.body.query.contains("pay")', SPELLINGS[2]?.[1] ?? '')).toEqual({ ok: true, value: true });
  });
});
