/** Validation errors of a body, a query or the arguments of a tool, as text: the expected value, without details of the implementation. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { firstProblem } from '../../broker/wire/validation.ts';
import { CheckArguments, problemsOf, ReadArguments, WriteArguments } from '../../mcp/tools/arguments.ts';

const Body = z
  .object({
    method: z.enum(['GET', 'PUT']),
    kind: z.literal('rest'),
    id: z.guid(),
    count: z.int().min(3).max(9),
    share: z.number().positive(),
    text: z.string().min(1).max(3).regex(/^a*$/, 'write the letter a only'),
    list: z.array(z.string()).max(1),
    secret: z.union([z.string().max(3), z.record(z.string(), z.string())]),
    from: z.union([z.enum(['now', 'beginning']), z.int().min(0)]),
    sort: z.discriminatedUnion('is', [z.object({ is: z.literal('a') }), z.object({ is: z.literal('b') })]),
  })
  .partial();

test.each<[object, string]>([
  [{ method: 'X' }, 'method: must be one of GET, PUT.'],
  [{ kind: 'soap' }, 'kind: must be rest.'],
  [{ id: 'q' }, 'id: must be a UUID.'],
  [{ count: 4.5 }, 'count: must be a whole number.'],
  [{ count: 'x' }, 'count: must be a number, not string.'],
  [{ count: 2 }, 'count: must be at least 3.'],
  [{ count: 10 }, 'count: must be at most 9.'],
  [{ share: 0 }, 'share: must be more than 0.'],
  [{ text: '' }, 'text: must have at least 1 character.'],
  [{ text: 'b' }, 'text: write the letter a only.'],
  // Two rules are violated by one mistake.
  [{ text: 'bbbb' }, 'text: must have at most 3 characters.'],
  [{ list: ['a', 'b'] }, 'list: must have at most 1 entry.'],
  [{ sort: { is: 'c' } }, 'sort.is: must be one of a, b.'],
  [{ secret: 5 }, 'secret: must be a string or an object, not number.'],
  [{ secret: 'abcd' }, 'secret: must have at most 3 characters.'],
  [{ secret: { key: 5 } }, 'secret: "key" must be a string, not number.'],
  [{ secret: { ['k'.repeat(500)]: 5 } }, `secret: "${'k'.repeat(64)}" must be a string, not number.`],
  [{ from: 'then' }, 'from: must be now, beginning or a number.'],
  [{ from: -1 }, 'from: must be at least 0.'],
  [{ method: 1, id: 2 }, 'method: must be one of GET, PUT. (and 1 more)'],
])('%j: %s', (body, sentence) => {
  expect(firstProblem(Body.safeParse(body).error!)).toBe(sentence);
});

test('a missing value with alternatives is reported with all of them', () => {
  const Secret = z.object({ secret: z.union([z.string(), z.record(z.string(), z.string())]) });
  expect(firstProblem(Secret.safeParse({}).error!)).toBe('secret: is missing: send a string or an object.');
});

test('an error about unknown fields lists the known ones', () => {
  const Point = z.strictObject({ x: z.number(), y: z.number().optional(), more: z.strictObject({}).optional() });
  const Points = z.strictObject({ points: z.array(Point) });
  const problem = (value: unknown): string => firstProblem(Points.safeParse(value).error!);
  expect(problem({ points: [], z: 1, w: 2 })).toBe('unknown field "z", "w"; allowed: points.');
  expect(problem({ points: [{ x: 1, z: 1 }] })).toBe('points.0: unknown field "z"; allowed: x, y, more.');
  expect(problem({ points: [{ x: 1, more: { a: 1 } }] })).toBe(
    'points.0.more: unknown field "a"; none is allowed here.',
  );
});

test.each<[z.ZodType, object, string]>([
  [ReadArguments, { platform: 'demo' }, 'scope: is missing: send a string; endpoint: is missing: send a string'],
  [
    WriteArguments,
    { platform: '', scope: 'demo:write', endpoint: '/items', method: 'GET', data: [], limit: 3 },
    'platform: must have at least 1 character; method: must be one of POST, PUT, PATCH; data: must be an object; limit: there is no such argument; allowed: platform, scope, endpoint, reason, connection_id, headers, caller, method, data, body',
  ],
  [CheckArguments, { approval_id: 'x' }, 'approval_id: must be a UUID'],
  [ReadArguments, [], 'arguments: must be an object, not array'],
])('an error about arguments of a tool lists all problems, %#', (schema, given, problems) => {
  expect(problemsOf(schema.safeParse(given).error!)).toBe(problems);
});
