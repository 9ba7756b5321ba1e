/** Builds docs/coverage.md: every route and status of the specification with the tests that show it, from the tests' names. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { ROOT } from '../world/root.ts';
import { NOT_YET_SERVED } from './not-yet-served.ts';
import { SPECIFICATION } from './specification.ts';

/** Statuses that no test can show, or that need none, with the reason. */
export const WITHOUT_TEST: Readonly<Record<string, string>> = {
  'GET /v1/agents/me → 404':
    'the token of an agent that is no more is a 401: the broker tells strangers apart by nothing',
};

type Shown = { what: string; file: string };

const NAME = /(?:^| > )((?:GET|POST|PUT|DELETE) \/\S* → \d{3})(?:: (.+))?$/;

/** Files with such names: those of this folder, and others that contain one. */
function files(): string[] {
  const all = readdirSync(join(ROOT, 'test'), { recursive: true })
    .map((file) => `test/${String(file).replaceAll('\\', '/')}`)
    .filter((file) => file.endsWith('.test.ts'));
  return all.filter(
    (file) => file.startsWith('test/contract/') || /\/\S* → \d{3}/.test(readFileSync(join(ROOT, file), 'utf8')),
  );
}

/**
 * Returns the tests that are named by a route and a status, by that name, as Vitest lists them. `programs`: already built by the current test run.
 */
export function shownStatuses(programs?: string): Map<string, Shown[]> {
  const vitest = join(ROOT, 'node_modules', 'vitest', 'vitest.mjs');
  const folder = mkdtempSync(join(tmpdir(), 'agent-broker-test-'));
  const to = join(folder, 'names.json');
  try {
    // Not the whole environment: this may run in a test, whose variables must not reach the new process.
    const env = { PATH: process.env.PATH, ...(programs && { AGENT_BROKER_TEST_PROGRAMS: programs }) };
    // One worker: each imports the broker by itself, which takes longer than reading all these files.
    const words = ['list', ...files(), '--no-static-parse', '--maxWorkers=1', `--json=${to}`];
    execFileSync(process.execPath, [vitest, ...words], { cwd: ROOT, env, stdio: 'pipe' });
    const found = new Map<string, Shown[]>();
    const listed: { name: string; file: string }[] = JSON.parse(readFileSync(to, 'utf8'));
    for (const { name, file } of listed) {
      const [, status, what = ''] = NAME.exec(name) ?? [];
      if (status === undefined) continue;
      const place = relative(ROOT, file).replaceAll('\\', '/');
      found.set(status, [...(found.get(status) ?? []), { what, file: place }]);
    }
    return found;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Returns the text of the page. */
export function coveragePage(shown = shownStatuses()): string {
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

This page is made of the names of the tests: \`npx node test/contract/write-coverage.ts\` writes it again, and a test fails while it is
not what the names say.

| route | status | shown by |
| --- | --- | --- |
${rows.join('\n')}
`;
}

function cell(route: string, name: string, tests: readonly Shown[]): string {
  if (tests.length === 0)
    return NOT_YET_SERVED.includes(route) ? 'not served yet' : `none: ${WITHOUT_TEST[name] ?? ''}`;
  const places = Map.groupBy(
    tests.toSorted((a, b) => (a.file < b.file ? -1 : 1)),
    ({ file }) => file,
  );
  return [...places]
    .map(([file, those]) => {
      const what = [...new Set(those.flatMap((one) => one.what || []))].join('; ');
      return `[${what === '' ? 'answer' : what.replaceAll('|', '\\|')}](../${file})`;
    })
    .join(', ');
}
