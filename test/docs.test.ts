/** The docs match the code: their links are valid, and they list exactly the names that the code defines. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { main } from '../bin/cli.ts';
import { governanceJsonSchema } from '../broker/config-file/json-schema.ts';
import { parseGovernance } from '../broker/config-file/parse.ts';
import { formatProblem } from '../broker/config-file/problems.ts';
import { readConfig } from '../broker/environment/config.ts';
import { ERRORS } from '../broker/http/errors.ts';
import type { Route } from '../broker/http/route.ts';
import { isOwners } from '../broker/http/routes/owner/openapi.ts';
import { ROUTES } from '../broker/http/routes.ts';
import { BUILTIN_NAMES } from '../broker/platforms/builtin-names.ts';
import { AGENT_STATUSES, DENY_REASONS, HALT_CAUSES } from '../broker/policy/facts.ts';
import { HASHED_COLUMNS } from '../broker/store/audit-columns.ts';
import { ROOT } from './world/checkout.ts';
import { fencesOf, withoutFences } from './world/markdown.ts';

const DOCS = readdirSync(join(ROOT, 'docs'), { recursive: true })
  .map((name) => `docs/${String(name).replaceAll('\\', '/')}`)
  .filter((name) => name.endsWith('.md'));
const PAGES = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', ...DOCS];
const read = (page: string): string => readFileSync(join(ROOT, page), 'utf8');

describe('links', () => {
  /** Returns the anchors of a page, as GitHub generates them from headings. */
  function anchorsOf(page: string): Set<string> {
    const anchors = new Set<string>();
    for (const [, heading = ''] of withoutFences(read(page)).matchAll(/^#{1,6} (.+)$/gm)) {
      const text = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', '');
      const slug = text
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
        .trim()
        .replaceAll(' ', '-');
      let anchor = slug;
      for (let n = 1; anchors.has(anchor); n++) anchor = `${slug}-${n}`;
      anchors.add(anchor);
    }
    return anchors;
  }

  test.each(PAGES)('every relative link of %s leads to a file, and to a heading in it', (page) => {
    const targets = [...withoutFences(read(page)).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
    const broken = targets.filter((target) => {
      if (/^[a-z]+:/.test(target)) return false;
      const [path = '', anchor] = target.split('#');
      const file = path === '' ? page : relative(ROOT, resolve(ROOT, dirname(page), path));
      if (!existsSync(join(ROOT, file))) return true;
      return anchor !== undefined && !anchorsOf(file).has(anchor);
    });
    expect(broken).toEqual([]);
  });

  test('every page of docs/ is linked from the front page, and every record from the index of decisions', () => {
    const front = read('README.md');
    const records = DOCS.filter((page) => /^docs\/decisions\/\d/.test(page));
    const others = DOCS.filter((page) => !records.includes(page));
    expect(others.filter((page) => !front.includes(`](${page})`))).toEqual([]);
    const index = read('docs/decisions/README.md');
    expect(records.length).toBeGreaterThan(10);
    expect(records.filter((page) => !index.includes(`](${page.slice('docs/decisions/'.length)})`))).toEqual([]);
  });
});

/** Returns the source text of the `…_VARIABLES` object in a file of `broker/environment/`. */
const variablesOf = (name: string): string =>
  /_VARIABLES = \{\n(.*?)^\};/ms.exec(read(`broker/environment/${name}.ts`))![1]!;

describe('names in the pages', () => {
  test('docs/owner-api.md has the reason of every recorded change and event', () => {
    const sources = readdirSync(join(ROOT, 'broker'), { recursive: true })
      .map((name) => `broker/${name}`)
      .filter((name) => name.endsWith('.ts'));
    const recorded = sources.flatMap((source) =>
      [...read(source).matchAll(/record(?:Change|InTurn)\([^;]{0,300}?reason: '([a-z_]+)'/g)].map(
        ([, reason]) => reason,
      ),
    );
    expect(recorded.length).toBeGreaterThan(40);
    const page = read('docs/owner-api.md');
    expect(recorded.filter((reason) => !page.includes(`\`${reason}\``))).toEqual([]);
  });

  test('docs/operations.md lists exactly the settings of the code', () => {
    const own = /const Environment = z\.object\(\{\n(.*?)^\}\);/ms.exec(read('broker/environment/config.ts'))![1]!;
    const schema = own + variablesOf('database') + variablesOf('oidc');
    const settings = [...schema.matchAll(/^ {2}([A-Z][A-Z_]+):/gm)].map(([, name]) => name!);
    const client = /const CLIENT_VARIABLES = \[\n(.*?)^\];/ms.exec(read('broker/environment/forms.ts'))![1]!;
    const clients = [...client.matchAll(/'([A-Z_]+)'/g)].map(([, name]) => name!);
    const page = read('docs/operations.md');
    const rows = [...page.matchAll(/^\| `([A-Z][A-Z_]+)` \|/gm)].map(([, name]) => name!);
    expect(rows.toSorted()).toEqual([...settings, ...clients].toSorted());
    const otel = [...read('broker/environment/otel.ts').matchAll(/^ {2}(OTEL_[A-Z_]+):/gm)].map(([, name]) => name!);
    expect(otel.length).toBeGreaterThan(10);
    expect(otel.filter((name) => !read('docs/observability.md').includes(`\`${name}\``))).toEqual([]);
    const named = new Set([...page.matchAll(/\bAGENT_BROKER_[A-Z_]*[A-Z]\b/g)].map(([name]) => name));
    expect([...named].filter((name) => !rows.includes(name))).toEqual([]);
  });

  test('docs/operations.md states the defaults of the code', () => {
    const config = readConfig({});
    const row = (name: string) =>
      new RegExp(`^\\| \`${name}\` \\| ([^|]*) \\|`, 'm').exec(read('docs/operations.md'))![1];
    expect(row('PORT')).toBe(`\`${config.port}\``);
    expect(row('HOST')).toBe(`\`${config.host}\``);
    expect(row('LOG_LEVEL')).toBe(`\`${config.logLevel}\``);
    expect(row('DATABASE_CONNECTIONS')).toBe(`\`${config.databaseConnections}\``);
    expect(row('AGENT_BROKER_DATA')).toBe('`./.agent-broker`');
    expect(row('GIT_MAX_REQUEST_BYTES')).toBe(`\`${config.gitMaxRequestBytes}\``);
    expect(row('AGENT_BROKER_LIMIT_FACTOR')).toBe(`\`${config.limitFactor}\``);
  });

  test('docs/agents.md has every error code with its status, every reason and every cause of a halt', () => {
    const page = read('docs/agents.md');
    const without = Object.entries(ERRORS).filter(([code, status]) => !page.includes(`| ${status} | \`${code}\` |`));
    expect(without).toEqual([]);
    expect([...DENY_REASONS, ...HALT_CAUSES].filter((word) => !page.includes(`\`${word}\``))).toEqual([]);
  });

  test('docs/agents.md has every status of an agent, and each transition leads to a listed status', () => {
    const [, section = ''] = /^### Status$([\s\S]*?)^### /m.exec(read('docs/agents.md')) ?? [];
    const rows = [...section.matchAll(/^\| `(\w+)` \|(.*)\|(.*)\|$/gm)];
    expect(rows.map(([, status]) => status).toSorted()).toEqual([...AGENT_STATUSES].toSorted());
    const leads = rows.flatMap(([, , , ends = '']) => [...ends.matchAll(/: `(\w+)`/g)].map(([, status]) => status));
    expect(new Set(leads)).toEqual(new Set(AGENT_STATUSES.filter((one) => one !== 'pending' && one !== 'suspended')));
  });

  test('every error code in a table of docs/agents.md exists in the code', () => {
    const known = new Set<string>([...Object.keys(ERRORS), 'agent_halted', 'Permission denied']);
    const rows = [...read('docs/agents.md').matchAll(/^\| [1-5]\d\d \| `([^`]+)` \|/gm)].map(([, code]) => code!);
    // Refusals with their own response format instead of the error envelope.
    for (const code of ['needs_consent', 'platform_reauth_needed', 'platform_not_connected', 'consent_required'])
      known.add(code);
    expect(rows.filter((code) => !known.has(code))).toEqual([]);
  });

  test('the pages about governance, platforms, notices and pushing the audit name every field of a governance file', () => {
    const text = ['governance', 'platforms', 'notices', 'audit-push'].map((page) => read(`docs/${page}.md`)).join('\n');
    const fields = new Set<string>();
    const walk = (schema: unknown): void => {
      if (typeof schema !== 'object' || schema === null) return;
      const { properties, ...others } = schema as { properties?: Record<string, unknown> };
      for (const [name, below] of Object.entries(properties ?? {})) {
        fields.add(name);
        walk(below);
      }
      for (const below of Object.values(others)) walk(below);
    };
    walk(governanceJsonSchema());
    expect(fields.size).toBeGreaterThan(50);
    expect([...fields].filter((name) => !new RegExp(`(^|[^\\w])${name}([^\\w]|$)`, 'm').test(text))).toEqual([]);
  });

  test('docs/owner-api.md has every route of owners, with the lowest role that may use it', () => {
    const roleOf = ({ auth, role = 'viewer' }: Route): string => {
      if (auth === 'none') return 'anybody';
      if (auth === 'local') return 'the command line';
      if (auth === 'owner_or_pipeline') return `${role}, or a pipeline`;
      return auth === 'owner' ? role : `${role}, or the command line`;
    };
    const table = read('docs/owner-api.md').split('\n## All routes\n')[1]!;
    const rows = table.split('\n').filter((line) => line.startsWith('| `'));
    const routes = ROUTES.filter(isOwners).map(
      (one) => `| \`${one.method} ${one.path}\` | ${roleOf(one)} | ${one.summary} |`,
    );
    expect(rows.toSorted()).toEqual(routes.toSorted());
  });

  test('docs/receipts.md lists the columns that the broker hashes', () => {
    const list = /const COLUMNS = \[\n(.*?)^\];/ms.exec(read('docs/receipts.md'))![1]!;
    const columns = [...list.matchAll(/'(\w+)'/g)].map(([, name]) => name);
    expect(columns).toEqual(HASHED_COLUMNS.toSorted());
  });

  test('docs/platforms.md lists every built-in platform', () => {
    const page = read('docs/platforms.md');
    expect(BUILTIN_NAMES.filter((name) => !page.includes(`| \`${name}\` |`))).toEqual([]);
  });

  const documents = PAGES.flatMap((page) =>
    fencesOf(read(page))
      .filter(({ info }) => info === 'yaml')
      .map(({ text, line }) => [`${page}:${line}`, text] as const),
  );
  test.each(documents)('the governance at %s is valid', (place, text) => {
    const parsed = parseGovernance(text, place);
    expect(parsed.ok ? [] : parsed.problems.map(formatProblem)).toEqual([]);
  });

  // The word after "sh" in the fence tells that test how to run the block.
  test('every command of docs/operations.md is run by test/docs/operations.test.ts', () => {
    const left = fencesOf(read('docs/operations.md')).filter(({ info }) => /^(sh|bash|console|shell)\b/.test(info));
    expect(left.filter(({ info }) => !['sh run', 'sh serve', 'sh stopped'].includes(info))).toEqual([]);
  });

  test('every command that a page names exists', async () => {
    const text = PAGES.map(read).join('\n');
    const groups = new Set(['owner', 'agent', 'keys', 'secret', 'verify']);
    const named = [...text.matchAll(/\bagent-broker ([a-z]+(?:-[a-z]+)*)(?: ([a-z]+(?:-[a-z]+)*))?/g)].map(
      ([, first = '', second]) => (groups.has(first) && second ? [first, second] : [first]),
    );
    const help = async (words: readonly string[]): Promise<string> => {
      const written = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
      try {
        await main(['node', 'agent-broker', ...words, '--help']);
        return written.mock.calls.map(([text]) => String(text)).join('');
      } finally {
        written.mockRestore();
        process.exitCode = undefined;
      }
    };
    const commands = [...new Set(named.map((words) => words.join(' ')))];
    expect(commands.length).toBeGreaterThan(8);
    const unknown: string[] = [];
    for (const command of commands)
      if (!(await help(command.split(' '))).startsWith(`Usage: agent-broker ${command} `)) unknown.push(command);
    expect(unknown).toEqual([]);
  });
});
