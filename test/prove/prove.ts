/** `npm run prove`: kills brokers hundreds of times, makes their dependencies fail, and records which invariants held. */
import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { wholeNumber } from '../../bench/bench-options.ts';
import { ROOT } from '../world/root.ts';
import type { Told } from './ledger.ts';
import { isRoot, NEEDS_ROOT, PARTS, type Part } from './parts.ts';
import { describeMachine, type Line, reportOf } from './report.ts';

const USAGE = `Usage: npm run prove -- [--cuts N] [--seconds N] [--part LIST] [--store LIST] [--seed N] [--minutes N] [--state FILE] [--report FILE]

  --cuts N       number of kills, of all parts and stores together (500)
  --seconds N    how long each model and fuzzer runs on each store (60)
  --part LIST    ${PARTS.map(({ name }) => name).join(', ')} (all)
  --store LIST   sqlite, postgres or both (both, if TEST_DATABASE_URL names a server)
  --seed N       determines the instants of kills and the inputs (random)
  --minutes N    starts no further run after this time (120)
  --state FILE   results so far; a run with the same file continues (test-artefacts/prove.jsonl)
  --report FILE  the report, rewritten after each round (test-artefacts/proof.md)

Parts that mount a file system are skipped, with a message, unless root runs it. Exits with 1 if any run failed.
`;

/** Kills per round on one store, after which its rows are checked. */
const CUTS_PER_ROUND = 8;

type Todo = { part: Part; store: Part['stores'][number]; cuts: number };
type Options = ReturnType<typeof readOptions>;

/** Parses the command line; throws an error whose text is for the user. */
export function readOptions(args: readonly string[]) {
  const text = { type: 'string' } as const;
  const options = {
    cuts: text,
    seconds: text,
    part: text,
    store: text,
    seed: text,
    minutes: text,
    state: text,
    report: text,
  };
  const { values } = parseArgs({ args: [...args], options });
  const server = process.env.TEST_DATABASE_URL;
  const stores = values.store?.split(',') ?? (server ? ['sqlite', 'postgres'] : ['sqlite']);
  const unknown = stores.find((store) => store !== 'sqlite' && store !== 'postgres');
  if (unknown !== undefined) throw new Error(`--store: ${unknown} is not a store; use sqlite, postgres or both.`);
  if (stores.includes('postgres') && !server)
    throw new Error('--store: TEST_DATABASE_URL has to name a PostgreSQL server on which databases may be created.');
  const names = values.part?.split(',') ?? PARTS.map(({ name }) => name);
  const parts = PARTS.filter(({ name }) => names.includes(name));
  const strange = names.find((name) => !PARTS.some((part) => part.name === name));
  if (strange !== undefined) throw new Error(`--part: there is no part ${strange}.`);
  return {
    cuts: wholeNumber('--cuts', values.cuts, 500, 100_000),
    seconds: wholeNumber('--seconds', values.seconds, 60, 100_000),
    parts,
    stores,
    seed: wholeNumber('--seed', values.seed, 1 + Math.floor(Math.random() * 2 ** 31), 2 ** 32),
    minutes: wholeNumber('--minutes', values.minutes, 120, 10_000),
    state: values.state ?? join(ROOT, 'test-artefacts', 'prove.jsonl'),
    report: values.report ?? join(ROOT, 'test-artefacts', 'proof.md'),
  };
}

const linesOf = (file: string): Line[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line))
    : [];

/** Returns the remaining work by part and store: failed kills are repeated. */
export function todoOf(
  { cuts, parts, stores }: Pick<Options, 'cuts' | 'parts' | 'stores'>,
  done: readonly Line[],
): Todo[] {
  const pairs = parts.flatMap((part) =>
    part.stores.filter((store) => stores.includes(store)).map((store) => ({ part, store })),
  );
  const killing = pairs.filter(({ part }) => part.times === 'cuts').length;
  return pairs
    .map(({ part, store }) => {
      const before = done.filter((line) => line.part === part.name && line.store === store && line.error === undefined);
      const made = before.reduce((sum, line) => sum + line.cuts, 0);
      return {
        part,
        store,
        cuts: part.times === 'cuts' ? Math.ceil(cuts / killing) - made : before.length > 0 ? 0 : 1,
      };
    })
    .filter((todo) => todo.cuts > 0);
}

/**
 * Runs the tests of a file for these parts on a store, with this many kills, or seconds for inputs. Returns their results, or an error result if there is none.
 */
async function run(
  todo: readonly Todo[],
  { cuts, seconds, seed }: { cuts: number; seconds: number; seed: number },
): Promise<Told[]> {
  const [{ part, store } = { part: PARTS[0] as Part, store: 'sqlite' }] = todo;
  const names = todo.map((one) => one.part.name);
  const folder = mkdtempSync(join(tmpdir(), 'agent-broker-prove-'));
  const result = join(folder, 'result');
  const env = {
    ...process.env,
    PROVE_RESULT: result,
    PROVE_PART: names.join(),
    PROVE_CUTS: String(cuts),
    PROVE_SECONDS: String(seconds),
    PROVE_SEED: String(seed),
    TEST_STORE: store,
    CI: '1',
  };
  const began = performance.now();
  const vitest = join(ROOT, 'node_modules', 'vitest', 'vitest.mjs');
  const child = spawn(process.execPath, [vitest, 'run', '--silent=true', '--reporter=dot', part.file], {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (bytes: Buffer) => {
      output = (output + bytes.toString()).slice(-20_000);
    });
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  const told = linesOf(result) as Told[];
  rmSync(folder, { recursive: true });
  const ms = Math.round(performance.now() - began);
  const silent = names.filter((name) => !told.some((one) => one.part === name));
  // Tests of the suite count nothing: their result is only that they passed.
  const error = code === 0 ? undefined : output.replaceAll(/\x1b\[\d+m/g, '').slice(-4_000);
  const cutsOf = part.times === 'cuts' ? 0 : 1;
  return [
    ...told,
    ...silent.map((name) => ({
      part: name,
      store,
      seed,
      cuts: error === undefined ? cutsOf : 0,
      checked: [],
      found: [],
      ms,
      ...(error !== undefined && { error }),
    })),
  ];
}

/** Removes parts that cannot run here, and reports them: without that a run would read as if they had passed. */
export function possible(options: Options, isRoot: boolean): { options: Options; leftOut: string[] } {
  const impossible = options.parts.filter(({ needsRoot }) => needsRoot && !isRoot);
  const parts = options.parts.filter((part) => !impossible.includes(part));
  return { options: { ...options, parts }, leftOut: impossible.map(({ name }) => name) };
}

/** Continues after the state file's last line. Returns the exit code. */
export async function prove(asked: Options): Promise<number> {
  const { options, leftOut } = possible(asked, isRoot);
  if (leftOut.length > 0) process.stdout.write(`Skipped: ${leftOut.join(', ')}: ${NEEDS_ROOT}.\n`);
  const until = performance.now() + options.minutes * 60_000;
  const machine = await describeMachine();
  for (const file of [options.state, options.report]) mkdirSync(dirname(file), { recursive: true });
  const done = linesOf(options.state);
  let failed = 0;
  for (let round = done.length; ; round++) {
    const [first] = todoOf(options, done).toSorted((a, b) => b.cuts - a.cuts);
    if (!first || performance.now() > until || failed > 20) break;
    // Parts of the same file and store run in one Vitest process, if they have the same amount of work left.
    const cuts = Math.min(CUTS_PER_ROUND, first.cuts);
    const together = todoOf(options, done).filter(
      (one) => one.part.file === first.part.file && one.store === first.store && one.cuts >= cuts,
    );
    const seed = (options.seed + round * 7_919) >>> 0;
    for (const told of await run(together, { cuts, seconds: options.seconds, seed })) {
      const line: Line = { ...told, at: new Date().toISOString(), commit: machine.commit };
      done.push(line);
      appendFileSync(options.state, `${JSON.stringify(line)}\n`);
      if (line.error !== undefined) failed++;
      const result = line.error === undefined ? 'passed' : `FAILED: ${line.error}`;
      process.stdout.write(`${line.at} ${line.part} on ${line.store}: ${line.cuts} in ${line.ms} ms, ${result}\n`);
    }
    // Includes results that another run, on the other store, wrote meanwhile.
    writeFileSync(options.report, reportOf(linesOf(options.state), machine));
  }
  const left = todoOf(options, done);
  if (left.length > 0)
    process.stdout.write(`Remaining: ${left.map(({ part, store }) => `${part.name} on ${store}`)}\n`);
  return failed > 0 || left.length > 0 ? 1 : 0;
}

if (import.meta.main) {
  const args = process.argv.slice(2);
  try {
    if (args.includes('--help')) process.stdout.write(USAGE);
    else process.exitCode = await prove(readOptions(args));
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    const aboutUsage = message.startsWith('--') || code?.startsWith('ERR_PARSE_ARGS');
    process.stderr.write(aboutUsage ? `${message}\n\n${USAGE}` : `The proof failed: ${message}\n`);
    process.exitCode = aboutUsage ? 2 : 1;
  }
}
