/** Query parameters: errors name the parameter and the expected value. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { moment, pageSize, readQuery, uuid } from '../../broker/http/query.ts';

const SCHEMA = z.object({
  agent: z.string().optional(),
  before: uuid('the id of the last row of the page before').optional(),
  limit: pageSize(200, 50),
  since: moment('the first moment').optional(),
});
const read = (query: string, strict = true) => readQuery(SCHEMA, `/owner/audit${query}`, strict);

test('given parameters are parsed, and missing ones have their defaults', () => {
  const before = '01A21482-B9EC-7CD0-82A2-4DCBEEBAAD50';
  expect(read(`?before=${before}&since=1970-01-01T00:00:01Z`)).toEqual({
    before: before.toLowerCase(),
    limit: 50,
    since: 1000,
  });
});

test.each([
  ['?agnt=a', 'Unknown query parameter "agnt". Did you mean "agent"? Allowed: agent, before, limit, since.'],
  ['?colour=red', 'Unknown query parameter "colour". Allowed: agent, before, limit, since.'],
  ['?%00=1', 'Unknown query parameter. Allowed: agent, before, limit, since.'],
  [`?${'x'.repeat(41)}`, 'Unknown query parameter. Allowed: agent, before, limit, since.'],
  ['?__proto__=1', 'Unknown query parameter "__proto__". Allowed: agent, before, limit, since.'],
  ['?before=zz', 'before: must be the id of the last row of the page before.'],
  ['?limit=201', 'limit: a whole number from 1 to 200.'],
  ['?limit=1&limit=2', 'limit: duplicate query parameter; send it once.'],
  ['?agent=%00', expect.stringMatching(/^agent: /)],
])('%s: %s', (query, detail) => {
  expect(() => read(query)).toThrow(expect.objectContaining({ code: 'invalid_request', message: detail }));
});

test('where proxies and browsers may add parameters, unknown ones are ignored', () => {
  expect(read('?colour=red', false)).toEqual({ limit: 50 });
});
