/** The budget of a condition limits the CPU time of the thread: whatever the meter counts, no other request waits longer than this. */
import { describe, expect, test } from 'vitest';
import { compileCondition, conditionInput } from '../../broker/policy/conditions/condition.ts';
import type { JsonObject } from '../../broker/policy/facts.ts';
import { machineMs } from '../world/longest-turn.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { thorough } from '../world/runner/thorough.ts';
import { agent, call, NOW } from './world.ts';

/** Milliseconds of thread time that the most expensive evaluation may take; on a slow machine half of what `machineMs` returns. */
const mostMs = () => Math.max(30, machineMs(Array.from({ length: 5_000 }, (_, i) => `${i} ${'a\n'.repeat(225)}`)) / 2);
const MAX_MS = mostMs();

/** Lengths of the list: the shortest is read to the end by some conditions, the longest by none. */
const SIZES = thorough ? [1000, 2500, 3500] : [1000, 3500];

const LONG = 480_000;
const long = 'a'.repeat(LONG);
/** A body of some 1 MiB whose list `l` has `n` members. Parsed as from the wire, so that no text shares memory with another. */
const bodyOf = (n: number, member: (i: number) => unknown, more: object = {}): JsonObject =>
  JSON.parse(JSON.stringify({ l: Array.from({ length: n }, (_, i) => member(i)), ...more }));
const texts = (n: number) => bodyOf(n, (i) => i, { a: long, b: long, c: `${long.slice(1)}b` });
const emoji = (n: number) => bodyOf(n, (i) => i, { a: '😀'.repeat(LONG / 4), b: 'b' });
const words = (n: number) => bodyOf(n, (i) => `t${i}`);
const times = (n: number) => bodyOf(n, () => ({ at: '2026-01-15T12:00:00Z' }));
const wide = (n: number) =>
  bodyOf(n, (i) => i, { m: Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`k${i}`, 1])) });

const QUERY = Array.from({ length: 4000 }, (_, i) => (i < 10 ? `a${i}` : 'a'))
  .join('&')
  .slice(0, 8000);
const HEADERS = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`X-H${i}`, 'v'.repeat(100)]));

/** Evaluates an expression on a long text in each iteration of a loop, without reading the text again. */
const held = (turn: string) => `[request.body.a].all(x, [request.body.b].all(y, request.body.l.all(z, ${turn})))`;

const CONDITIONS: readonly [string, (n: number) => JsonObject][] = [
  ['request.body.l.all(i, i != request.query_all.a0[0])', words],
  ['request.body.l.all(i, !(i in request.query))', words],
  ['request.body.l.all(i, request.headers["x-h1"] != i)', words],
  ['request.body.l.exists(i, request.query[request.body.a] == i)', texts],
  ['request.body.l.all(i, !(request.body.a in request.query))', texts],
  ['request.body.l.all(i, request.body.a.startsWith(request.body.b))', texts],
  ['request.body.l.all(i, request.body.a.endsWith(request.body.b))', texts],
  [held('x.startsWith(y)'), texts],
  [held('x == y'), texts],
  [held('[x, x, x] == [y, y, y]'), texts],
  [held('{x: 1} == {y: 1}'), texts],
  [held('x in [y]'), texts],
  [held('x <= y'), texts],
  [held('!x.contains("b")'), texts],
  [held('!x.contains("ab")'), texts],
  [held(`!x.contains("b${'a'.repeat(60)}")`), texts],
  [held('!x.matches("(a|b)*c")'), texts],
  [held('size(x) > 1'), texts],
  [held('size(x) >= 2'), emoji],
  [held('x + y != "b"'), texts],
  [held('int(x) == 1'), texts],
  ['request.body.l.exists(i, timestamp(i) == now)', words],
  ['request.body.l.exists(i, duration(i) == duration("1s"))', words],
  ['request.body.l.exists(i, request.body.missing == i || int(i) > 3)', words],
  ['request.body.l.exists(i, i > 3)', words],
  ['request.body.l.exists(i, request.body.l.exists(j, int(j) == 1))', (n) => words(n / 25)],
  ['request.body.l.all(i, now.getHours("Europe/Berlin") + now.getMinutes("Asia/Tokyo") >= 0)', words],
  ['request.body.l.all(i, timestamp(i.at).getHours("Europe/Berlin") >= 0)', times],
  ['request.body.l.all(i, now - timestamp(i.at) >= duration("0s"))', times],
  ['request.body.l.all(i, size(request.body.m) > 1)', wide],
  ['request.body.l.all(i, request.body.m == request.body.m)', wide],
];

test('all conditions of a call share one budget, which many rules together cannot exceed', () => {
  const compiled = compileCondition('request.body.l.all(i, i != "none")');
  if (!compiled.ok) throw new Error(compiled.error);
  const ask = { platformId: 'crm', scope: 'crm:x', call: call({ body: words(3500) }) };
  const evaluate = (input = conditionInput(agent(), ask, NOW)) => compiled.condition.evaluate(input);
  expect(evaluate()).toEqual({ ok: true, value: true });
  const input = conditionInput(agent(), ask, NOW);
  const ended = Array.from({ length: 50 }, () => evaluate(input));
  expect(ended[1]).toEqual({ ok: true, value: true });
  expect(ended.at(-1)).toEqual({ ok: false, error: expect.stringContaining('costs too much') });
  // A condition that reads nothing large costs next to nothing.
  const small = compileCondition('request.method == "POST"');
  const other = conditionInput(agent(), ask, NOW);
  const all = Array.from({ length: 2000 }, () => small.ok && small.condition.evaluate(other).ok);
  expect(all).not.toContain(false);
});

describe('no condition takes more than 30 ms of thread time', () => {
  test.each(CONDITIONS)('%s', { timeout: scaledTimeout(60_000) }, (source, make) => {
    const compiled = compileCondition(source);
    if (!compiled.ok) throw new Error(compiled.error);
    for (const n of SIZES) {
      const body = make(n);
      const evaluate = () =>
        compiled.condition.evaluate(
          conditionInput(
            agent(),
            { platformId: 'crm', scope: 'crm:x', call: call({ body, query: QUERY, headers: HEADERS }) },
            NOW,
          ),
        );
      // Measures the thread's own time, because other work runs concurrently; several evaluations at a time, because the clock of a thread is coarse. Takes
      // the shortest of five rounds; a machine that got slower since, because others use its caches and memory, is measured again.
      let shortest = Number.POSITIVE_INFINITY;
      let most = MAX_MS;
      for (let round = 0; round < 5 && shortest >= most; round++) {
        if (round > 0) most = Math.max(most, mostMs());
        const before = process.threadCpuUsage();
        for (let i = 0; i < 3; i++) evaluate();
        const { user, system } = process.threadCpuUsage(before);
        shortest = Math.min(shortest, (user + system) / 3 / 1000);
      }
      expect(shortest, `${n} members`).toBeLessThan(most);
    }
  });
});
