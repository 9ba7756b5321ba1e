import { expect, test } from 'vitest';
import { standingSentence } from '../../broker/console/static/standing/sentence.js';
import { standingWords } from '../../broker/sentences/standing.ts';

test.each([
  { count: 1, session: false, free: [] },
  { count: 20, session: true, free: [{ member: '/item/a~1b', at_most: null }] },
  {
    count: 2,
    session: false,
    free: [
      { member: '?q', at_most: null },
      { member: '2', at_most: null },
      { member: '/amount', at_most: 5 },
    ],
  },
])('the text shown before a standing approval is created equals the stored one: %j', (terms) => {
  const all = { ...terms, until: '2026-12-01T10:30:00.000Z' };
  expect(standingSentence(all)).toBe(standingWords(all));
});
