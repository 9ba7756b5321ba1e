/** docs/coverage.md matches the names of the tests, and every gap is explained. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { PROGRAMS } from '../world/checkout.ts';
import { coveragePage, shownStatuses, WITHOUT_TEST } from './coverage.ts';
import { NOT_YET_SERVED } from './not-yet-served.ts';
import { SPECIFICATION } from './specification.ts';

const ALL = SPECIFICATION.flatMap(({ method, path, statuses }) =>
  statuses.map((status) => ({ route: `${method} ${path}`, name: `${method} ${path} → ${status}` })),
);

// Not at import time: this file is itself among those that are listed.
let shown: ReturnType<typeof shownStatuses>;
beforeAll(() => {
  shown = shownStatuses(PROGRAMS);
}, 180_000);

test('every status of a served route is shown by a test, or has a reason why not', () => {
  const served = ALL.filter(({ route }) => !NOT_YET_SERVED.includes(route)).map(({ name }) => name);
  expect(served.filter((name) => !shown.has(name) && !(name in WITHOUT_TEST))).toEqual([]);
  expect(Object.keys(WITHOUT_TEST).filter((name) => shown.has(name) || !served.includes(name))).toEqual([]);
  expect(served.length).toBeGreaterThan(120);
});

test('docs/coverage.md is up to date: npx node test/contract/write-coverage.ts', () => {
  expect(readFileSync(join(resolve(import.meta.dirname, '..', '..'), 'docs', 'coverage.md'), 'utf8')).toBe(
    coveragePage(shown),
  );
});
