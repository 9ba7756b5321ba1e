/** The parameter of long polling. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { Waiting } from '../../broker/http/waiting.ts';

test.each([
  [undefined, 0],
  ['0', 0],
  ['50', 50_000],
  ['51', 50_000],
  ['999999', 50_000],
])('?wait=%s waits for %i ms', (wait, ms) => {
  expect(Waiting.parse({ wait })).toEqual({ wait: ms });
});

test.each(['-1', '1.5', '1e1', ' 1', '', '1000000'])('?wait=%s is refused', (wait) => {
  expect(Waiting.safeParse({ wait }).success).toBe(false);
});

test('a program that checks the parameter by its schema does not refuse what the broker accepts', () => {
  const wait = z.toJSONSchema(Waiting, { io: 'input' }).properties?.wait;
  expect(wait).toMatchObject({ type: 'integer', minimum: 0 });
  expect(wait).not.toHaveProperty('maximum');
});
