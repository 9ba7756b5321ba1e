/** The docs are true: their commands run, their links lead somewhere, and they name what the code knows, no more, no less. */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readConfig } from '../broker/config.ts';
import { DENY_REASONS, HALT_CAUSES } from '../broker/decision/facts.ts';
import { governanceJsonSchema } from '../broker/governance/json-schema.ts';
import { parseGovernance } from '../broker/governance/parse.ts';
import { formatProblem } from '../broker/governance/problems.ts';
import { ERRORS } from '../broker/http/errors.ts';
import { BUILTIN_NAMES } from '../broker/platforms/builtin.ts';
import { newFolder } from './world/stores.ts';

const run = promisify(execFile);
const ROOT = resolve(import.meta.dirname, '..');
const BIN = join(ROOT, 'bin', 'agent-broker.js');
const DOCS = readdirSync(join(ROOT, 'docs'))
  .filter((name) => name.endsWith('.md'))
  .map((name) => `docs/${name}`);
const PAGES = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', ...DOCS];
const read = (page: string): string => readFileSync(join(ROOT, page), 'utf8');

type Fence = { info: string; text: string; line: number };

function fencesOf(markdown: string): Fence[] {
  return [...markdown.matchAll(/^```([^\n]*)\n(.*?)^```$/gms)].map(({ 1: info = '', 2: text = '', index }) => ({
    info,
    text,
    line: markdown.slice(0, index).split('\n').length,
  }));
}

const withoutFences = (markdown: string): string => markdown.replace(/^```[^\n]*\n.*?^```$/gms, '');

/** What the commands of the page need beside the broker. Where it is not there, this part is skipped and says so. */
const missing = ['bash', 'curl', 'openssl'].filter((tool) => {
  try {
    execFileSync(tool, ['--version'], { stdio: 'ignore' });
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
});
if (missing.length > 0 && process.env.CI) throw new Error(`CI must run the docs: ${missing.join(', ')} missing.`);
const toolNote = missing.length > 0 ? ` (skipped: ${missing.join(', ')} not installed)` : '';

describe.skipIf(missing.length > 0)(`getting-started.md${toolNote}`, () => {
  const PAGE = 'docs/getting-started.md';
  const SHOWN_AT = 'http://localhost:8787';
  const folder = newFolder();
  const brokers: ChildProcess[] = [];
  afterAll(() => Promise.all(brokers.map((broker) => ended(broker))));

  async function ended(broker: ChildProcess): Promise<void> {
    if (broker.exitCode !== null) return;
    const exit = new Promise((done) => broker.once('exit', done));
    broker.kill('SIGTERM');
    await exit;
  }

  /** A broker as the page starts it, on a free port. Answers its address. */
  function start(data: string, ...words: string[]): Promise<string> {
    const env = { PATH: process.env.PATH, PORT: '0', LOG_LEVEL: 'silent', AGENT_BROKER_DATA: data };
    const broker = spawn(process.execPath, [BIN, 'serve', ...words], {
      cwd: folder,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    brokers.push(broker);
    return new Promise((found, reject) => {
      let output = '';
      for (const stream of [broker.stdout, broker.stderr])
        stream.on('data', (chunk: Buffer) => {
          output += chunk;
          const address = /running at (http:\S+)/.exec(output)?.[1];
          if (address) found(address);
        });
      broker.once('exit', (code) => reject(new Error(`the broker ended with ${code}: ${output}`)));
    });
  }

  /** One block, by itself but for what earlier ones of its world exported. Answers what it printed. */
  async function perform(block: string, at: { baseUrl: string; data: string; state: string }): Promise<string> {
    const script = [
      'set -euo pipefail',
      `npx() { shift; "${process.execPath}" "${BIN}" "$@"; }`,
      `if [ -f "${at.state}" ]; then . "${at.state}"; fi`,
      block.replaceAll(SHOWN_AT, at.baseUrl).replaceAll('/tmp/', `${folder}/`),
      `declare -px > "${at.state}"`,
    ].join('\n');
    const env = { PATH: process.env.PATH, HOME: folder, AGENT_BROKER_DATA: at.data };
    const { stdout } = await run('bash', ['-c', script], { cwd: folder, env });
    return stdout.replaceAll(at.baseUrl, SHOWN_AT);
  }

  /** What differs from one run to the next, made the same. */
  const still = (text: string): string =>
    text
      .replaceAll(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, '<uuid>')
      .replaceAll(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '<moment>')
      .replaceAll(/\bagt_[a-z0-9]{20,21}\b/g, '<agent>')
      .replaceAll(/(?<![\w-])[\w-]{43}(?![\w-])/g, '<thumbprint>')
      .replaceAll(/\bscopes: \d+$/gm, 'scopes: <number>');

  const fences = fencesOf(read(PAGE));
  const governance = fences.find(({ info }) => info === 'yaml')!.text;
  const worlds = {
    'sh run': { baseUrl: '', data: join(folder, 'sandbox'), state: join(folder, 'sandbox.env') },
    'sh run acme': { baseUrl: '', data: join(folder, 'acme'), state: join(folder, 'acme.env') },
  };
  const steps = fences.flatMap((fence, i) => {
    const world = worlds[fence.info as keyof typeof worlds];
    const next = fences[i + 1];
    return world ? [{ ...fence, world, answer: next && ['json', 'text'].includes(next.info) ? next : undefined }] : [];
  });

  beforeAll(async () => {
    writeFileSync(join(folder, 'governance.yaml'), governance);
    worlds['sh run'].baseUrl = await start(worlds['sh run'].data);
    worlds['sh run acme'].baseUrl = await start('./acme', '--no-sandbox');
  });

  test('has blocks to run, in both worlds', () => {
    expect(steps.filter(({ info }) => info === 'sh run').length).toBeGreaterThan(4);
    expect(steps.filter(({ info }) => info === 'sh run acme').length).toBeGreaterThan(3);
    expect(steps.filter(({ answer }) => answer).length).toBeGreaterThan(6);
  });

  // In order: a later block uses what an earlier one made.
  test.each(steps)('the block at line $line answers what is shown', async (step) => {
    const printed = await perform(step.text, step.world);
    const { answer } = step;
    if (answer?.info === 'json') expect(JSON.parse(still(printed))).toEqual(JSON.parse(still(answer.text)));
    if (answer?.info === 'text') expect(still(printed)).toContain(still(answer.text));
    // The page tells the reader to copy the ids; that is a person's work, so it is done here.
    const [, agentId, ownerId] = /(agt_\w+)\s+([0-9a-f-]{36})\s+active$/m.exec(printed) ?? [];
    if (agentId)
      writeFileSync(
        step.world.state,
        `${readFileSync(step.world.state, 'utf8')}export AGENT_BROKER_AGENT_ID=${agentId} AGENT_BROKER_OWNER_ID=${ownerId} AGENT_BROKER_PRIVATE_KEY=keys/triage.key\n`,
      );
  });
});

describe('links', () => {
  /** The anchors of a page, as GitHub makes them of headings. */
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

  test('every page of docs/ is linked from the front page', () => {
    const front = read('README.md');
    expect(DOCS.filter((page) => !front.includes(`](${page})`))).toEqual([]);
  });
});

describe('what the pages name', () => {
  test('the settings of docs/operations.md are those of the code', () => {
    const source = read('broker/config.ts');
    const schema = /const Environment = z\.object\(\{\n(.*?)^\}\);/ms.exec(source)![1]!;
    const settings = [...schema.matchAll(/^ {2}([A-Z][A-Z_]+):/gm)].map(([, name]) => name!);
    const client = /const CLIENT_VARIABLES = \[\n(.*?)^\];/ms.exec(source)![1]!;
    const clients = [...client.matchAll(/'([A-Z_]+)'/g)].map(([, name]) => name!);
    const page = read('docs/operations.md');
    const rows = [...page.matchAll(/^\| `([A-Z][A-Z_]+)` \|/gm)].map(([, name]) => name!);
    expect(rows.toSorted()).toEqual([...settings, ...clients].toSorted());
    const named = new Set([...page.matchAll(/\bAGENT_BROKER_[A-Z_]*[A-Z]\b/g)].map(([name]) => name));
    expect([...named].filter((name) => !rows.includes(name))).toEqual([]);
  });

  test('the defaults of docs/operations.md are those of the code', () => {
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

  test('no error code in a table of docs/agents.md is unknown to the code', () => {
    const known = new Set<string>([...Object.keys(ERRORS), 'agent_halted', 'Permission denied']);
    const rows = [...read('docs/agents.md').matchAll(/^\| [1-5]\d\d \| `([^`]+)` \|/gm)].map(([, code]) => code!);
    // Refusals that have a form of their own, not the error envelope.
    for (const code of ['needs_consent', 'platform_reauth_needed', 'platform_not_connected', 'consent_required'])
      known.add(code);
    expect(rows.filter((code) => !known.has(code))).toEqual([]);
  });

  test('docs/governance.md and docs/platforms.md name every field of a governance file', () => {
    const text = read('docs/governance.md') + read('docs/platforms.md');
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

  test('every command that a page names is there', async () => {
    const text = PAGES.map(read).join('\n');
    const groups = new Set(['owner', 'agent', 'keys', 'verify']);
    const named = [...text.matchAll(/\bagent-broker ([a-z]+)(?: ([a-z]+))?/g)].map(([, first = '', second]) =>
      groups.has(first) && second ? [first, second] : [first],
    );
    const help = async (words: readonly string[]): Promise<string> =>
      (await run(process.execPath, [BIN, ...words, '--help'], { env: { PATH: process.env.PATH } }).catch((e) => e))
        .stdout;
    const commands = [...new Set(named.map((words) => words.join(' ')))];
    expect(commands.length).toBeGreaterThan(8);
    const unknown: string[] = [];
    for (const command of commands)
      if (!(await help(command.split(' '))).startsWith(`Usage: agent-broker ${command} `)) unknown.push(command);
    expect(unknown).toEqual([]);
  });
});
