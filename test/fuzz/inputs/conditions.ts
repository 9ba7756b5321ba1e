/**
 * Conditions in CEL: compiling and evaluating one never throws, ends in time, has no value of the call in its reason, and gives the same result for
 * the same call. Where both accept a condition, the result equals that of the language's library for the same values.
 */
import { type CelInput, celEnv, celList, celMap, parse, plan } from '@bufbuild/cel';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { expect } from 'vitest';
import { compileCondition, conditionInput } from '../../../broker/policy/conditions/condition.ts';
import type { JsonObject, JsonValue } from '../../../broker/policy/facts.ts';
import { agent, call, NOW } from '../../policy/world.ts';
import { type Count, type Fuzzed, usually } from '../fuzz.ts';

/** Marker in values of calls, which no reason may contain. */
const CANARY = 'CANARY9f8e7d';
/** CPU time limit of one evaluation, on a machine that is shared. */
const MAX_MS = 250;

const leaf = fc.constantFrom<JsonValue>(
  0,
  1,
  -1,
  2.5,
  7,
  9007199254740991,
  true,
  false,
  '',
  'a',
  'ab',
  CANARY,
  '2026-01-01T00:00:00Z',
  '1',
);
const member = fc.oneof(
  { weight: 4, arbitrary: leaf },
  fc.array(leaf, { maxLength: 5 }),
  fc.record({ x: leaf, y: leaf }, { requiredKeys: [] }),
  fc.array(fc.record({ x: leaf }), { maxLength: 3 }),
);
const body = fc.record(
  { a: member, b: member, l: fc.array(leaf, { maxLength: 6 }), m: fc.record({ x: member }) },
  { requiredKeys: [] },
);

const { bool } = fc.letrec<{ bool: string; value: string; list: string }>((tie) => {
  const text = fc.constantFrom(
    '"a"',
    '"ab"',
    '""',
    'request.method',
    'agent.name',
    'scope',
    'platform',
    'request.endpoint',
    '"[a-c]+"',
  );
  const path = usually(
    fc.constantFrom(
      'request.body.a',
      'request.body.b',
      'request.body.m.x',
      'request.body["a"]',
      'request.query.q',
      'request.headers["x-a"]',
      'x',
    ),
    ...['request.body.missing', 'request', 'unknown', 'agent.nothing', 'request.body.l[9]', 'request.body.__proto__'],
  );
  return {
    value: fc.oneof(
      { maxDepth: 3 },
      { weight: 5, arbitrary: path },
      { weight: 3, arbitrary: text },
      fc.constantFrom(
        '1',
        '0',
        '-1',
        '2.5',
        '9223372036854775807',
        '1u',
        'null',
        'true',
        'now',
        '[]',
        '{}',
        'duration("1h")',
        'b"x"',
      ),
      fc.tuple(tie('value'), fc.constantFrom('+', '-', '*', '/', '%'), tie('value')).map((all) => `(${all.join(' ')})`),
      fc
        .tuple(fc.constantFrom('size', 'int', 'string', 'double', 'uint', 'timestamp', 'type', 'bytes'), tie('value'))
        .map(([name, of]) => `${name}(${of})`),
      fc.tuple(tie('list'), fc.nat(3)).map(([of, at]) => `${of}[${at}]`),
      fc.tuple(tie('bool'), tie('value'), tie('value')).map(([is, one, other]) => `(${is} ? ${one} : ${other})`),
      fc
        .tuple(
          fc.constantFrom('now', 'timestamp(request.body.a)'),
          fc.constantFrom('getHours()', 'getDayOfWeek("Europe/Berlin")', 'getFullYear("+02:00")'),
        )
        .map((all) => all.join('.')),
    ),
    list: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom('request.body.l', 'request.body.a', '[1, 2, 3]', 'request.query_all.q', '["a", "b"]'),
      fc
        .tuple(tie('list'), fc.constantFrom('map', 'filter'), tie('bool'))
        .map(([of, loop, is]) => `${of}.${loop}(x, ${is})`),
      fc.tuple(tie('list'), tie('list')).map((all) => `(${all.join(' + ')})`),
    ),
    bool: fc.oneof(
      { maxDepth: 3 },
      {
        weight: 4,
        arbitrary: fc
          .tuple(tie('value'), fc.constantFrom('==', '!=', '<', '<=', '>', '>='), tie('value'))
          .map((all) => all.join(' ')),
      },
      fc.tuple(tie('bool'), fc.constantFrom('&&', '||'), tie('bool')).map((all) => `(${all.join(' ')})`),
      tie('bool').map((of) => `!(${of})`),
      fc.tuple(tie('value'), tie('list')).map(([one, of]) => `${one} in ${of}`),
      fc.constantFrom(
        'has(request.body.a)',
        'has(request.body.m.x)',
        '"a" in request.body',
        'has(request.git)',
        'true',
        'first_time.operation',
      ),
      fc
        .tuple(tie('list'), fc.constantFrom('all', 'exists', 'exists_one'), tie('bool'))
        .map(([of, loop, is]) => `${of}.${loop}(x, ${is})`),
      fc
        .tuple(tie('value'), fc.constantFrom('contains', 'startsWith', 'endsWith', 'matches'), text)
        .map(([of, name, that]) => `${of}.${name}(${that})`),
    ),
  };
});
const soup = fc
  .array(
    fc.constantFrom(
      ...'()[]{}.,:?!&|+-*/%"\'\\',
      'request',
      'body',
      '"a"',
      '1',
      'in',
      'has',
      'all',
      'x',
      ' ',
      'r"',
      '\n',
      '💥',
      '\0',
    ),
    { maxLength: 20 },
  )
  .map((all) => all.join(''));
const source = fc
  .tuple(fc.oneof({ weight: 9, arbitrary: bool }, soup), fc.nat(80), usually(fc.constant(''), ...'()[]."?:&\\\0'))
  .map(([whole, at, put]) => whole.slice(0, at) + put + whole.slice(at));

/** Converts a value for the library: whole numbers are ints, as in the broker. */
function plainly(value: JsonValue): CelInput {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return celList(value.map(plainly));
  return celMap(new Map(Object.entries(value).map(([name, one]) => [name, plainly(one)])));
}

/** Returns the library's result; undefined: not a bool. */
function reference(text: string, given: JsonObject): boolean | undefined {
  try {
    const who = agent();
    const made = plan(
      celEnv(),
      parse(text),
    )({
      request: plainly({
        method: 'POST',
        endpoint: '/items',
        body: given,
        query: { q: 'a' },
        query_all: { q: ['a'] },
        headers: { 'x-a': 'b' },
      }),
      agent: plainly({ name: who.name }),
      platform: 'crm',
      scope: 'crm:x',
      now: timestampFromMs(NOW),
    } as never);
    return typeof made === 'boolean' ? made : undefined;
  } catch {
    return undefined;
  }
}

export function conditions(count: Count): Fuzzed {
  const property = fc.property(source, body, (text, given) => {
    const compiled = compileCondition(text);
    if (!compiled.ok) {
      expect(compiled.error).toMatch(/\S/);
      return count('refused');
    }
    const evaluate = () => {
      const ask = {
        platformId: 'crm',
        scope: 'crm:x',
        call: call({
          method: 'POST',
          path: '/items',
          body: given as JsonObject,
          query: 'q=a',
          headers: { 'X-A': 'b' },
        }),
      };
      return compiled.condition.evaluate(conditionInput(agent(), ask, NOW));
    };
    const before = process.threadCpuUsage();
    const said = evaluate();
    const { user, system } = process.threadCpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(MAX_MS);
    expect(evaluate()).toEqual(said);
    count(said.ok ? `is ${said.value}` : 'fails');
    if (!said.ok) {
      expect(said.error).toMatch(/\S/);
      expect(said.error).not.toContain(CANARY);
      return;
    }
    const theirs = reference(text, given as JsonObject);
    // Cases in which implementations differ, the library being one of them, are not compared.
    if (theirs === undefined || said.others !== undefined) return;
    count('same as the library');
    expect(said.value).toBe(theirs);
  });
  return { property, reaches: ['refused', 'fails', 'is true', 'is false', 'same as the library'] };
}
