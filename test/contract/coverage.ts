/** docs/coverage.md: every route and status of the specification with the tests that show it, made of the tests' names. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { NOT_YET_SERVED } from './not-yet-served.ts';
import { SPECIFICATION } from './specification.ts';

const ROOT = resolve(import.meta.dirname, '..', '..');

/** What no test can show, or needs none, and why. */
export const WITHOUT_TEST: Readonly<Record<string, string>> = {
  'GET /v1/agents/me → 404':
    'the token of an agent that is no more is a 401: the broker tells strangers apart by nothing',
};

type Shown = { what: string; file: string };

/** `show('POST /v1/actions → 403: why', …)`, also as a plain test. */
const NAME = /\b(?:show|test|it)\(\s*(['"`])((?:GET|POST|PUT|DELETE) \/\S* → \d{3})(?:: ((?:(?!\1).)+))?\1/g;

/** The tests of the repository that are named by a route and a status, by that name. */
export function shownStatuses(): Map<string, Shown[]> {
  const found = new Map<string, Shown[]>();
  const files = readdirSync(join(ROOT, 'test'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.test.ts'))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).replaceAll('\\', '/'));
  for (const file of files.toSorted())
    for (const [, , name = '', what = ''] of readFileSync(join(ROOT, file), 'utf8').matchAll(NAME))
      found.set(name, [...(found.get(name) ?? []), { what, file }]);
  return found;
}

/** The page. */
export function coveragePage(): string {
  const shown = shownStatuses();
  const rows = SPECIFICATION.flatMap(({ method, path, statuses }) =>
    statuses.map((status) => {
      const route = `${method} ${path}`;
      const name = `${route} → ${status}`;
      return `| \`${route}\` | ${status} | ${cell(route, name, shown.get(name) ?? [])} |`;
    }),
  );
  const count = (of: (name: string) => boolean) =>
    SPECIFICATION.flatMap((one) => one.statuses.map((status) => `${one.method} ${one.path} → ${status}`)).filter(of)
      .length;
  return `# Coverage

Every route and status of the specification, with the tests that show it. Each of these tests asks a running broker and holds the
answer to the [OpenAPI document](agents.md#the-api-document): status, media type, body and headers. Many more tests ask why.

Of ${rows.length} statuses ${count((name) => shown.has(name))} are shown.

This page is made of the names of the tests: \`npx node test/contract/write-coverage.ts\` writes it anew, and a test fails while it is
not what the names say.

| route | status | shown by |
| --- | --- | --- |
${rows.join('\n')}
`;
}

function cell(route: string, name: string, tests: readonly Shown[]): string {
  if (tests.length === 0)
    return NOT_YET_SERVED.includes(route) ? 'not served yet' : `none: ${WITHOUT_TEST[name] ?? ''}`;
  const files = Map.groupBy(tests, ({ file }) => file);
  return [...files]
    .map(([file, those]) => {
      const what = those.flatMap((one) => one.what || []).join('; ');
      return `[${what === '' ? 'answer' : what.replaceAll('|', '\\|')}](../${file})`;
    })
    .join(', ');
}
