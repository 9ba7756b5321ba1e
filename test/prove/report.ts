/** Writes the Markdown report of `npm run prove` from its state file. */
import { execFileSync } from 'node:child_process';
import { availableParallelism, cpus, release } from 'node:os';
import pg from 'pg';
import { ROOT } from '../world/root.ts';
import type { Told } from './ledger.ts';
import { PARTS } from './parts.ts';

/** A line of the state file. */
export type Line = Told & { at: string; commit: string };

export type Machine = { commit: string; node: string; cores: number; cpu: string; linux: string; postgres: string };

export async function describeMachine(): Promise<Machine> {
  const commit = execFileSync('git', ['rev-parse', '--short=12', 'HEAD'], { cwd: ROOT, encoding: 'utf8' }).trim();
  let postgres = 'not used';
  if (process.env.TEST_DATABASE_URL) {
    const client = new pg.Client({ connectionString: process.env.TEST_DATABASE_URL });
    await client.connect();
    postgres = (await client.query('show server_version')).rows[0].server_version.split(' ')[0];
    await client.end();
  }
  return {
    commit,
    node: process.version,
    cores: availableParallelism(),
    cpu: cpus()[0]?.model ?? 'unknown',
    linux: release(),
    postgres,
  };
}

/** Sums values by name; of `longest` and `most` values it takes the maximum. */
function added(lists: readonly (readonly [string, number])[][]): Map<string, number> {
  const sum = new Map<string, number>();
  for (const [name, count] of lists.flat()) {
    const before = sum.get(name) ?? 0;
    sum.set(name, /^(longest|most) /.test(name) ? Math.max(before, count) : before + count);
  }
  return sum;
}

const table = (head: readonly string[], rows: readonly (readonly (string | number)[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');

const total = (lines: readonly Line[]) => lines.reduce((sum, { cuts }) => sum + cuts, 0);

/** Returns the number of inputs per second, over all passed runs. */
const rate = (lines: readonly Line[]): string => {
  const held = lines.filter(({ error }) => error === undefined);
  const seconds = held.reduce((sum, { ms }) => sum + ms, 0) / 1000;
  return seconds === 0 ? '' : `, ${Number((total(held) / seconds).toPrecision(3))} per second`;
};

/** Returns the command that reproduces a failure, as far as it depends on the seed and not on the machine's timing. */
const again = ({ part, store, seed, cuts }: Line): string => {
  const { file = '', times = 'once' } = PARTS.find(({ name }) => name === part) ?? {};
  const drawn = {
    cuts: `PROVE_PART=${part} PROVE_CUTS=${cuts + 1} PROVE_SEED=${seed} `,
    seconds: `PROVE_PART=${part} PROVE_SEED=${seed} PROVE_RUN=${cuts} `,
    once: '',
  };
  return `${drawn[times]}TEST_STORE=${store} npx vitest run ${file}`;
};

const escaped = (text: string) => text.split('\n')[0]?.replaceAll('|', '\\|').slice(0, 300) ?? '';

export function reportOf(lines: readonly Line[], machine: Machine): string {
  const held = lines.filter(({ error }) => error === undefined);
  const broken = lines.filter(({ error }) => error !== undefined);
  const isKill = ({ part }: Line) => PARTS.some(({ name, times }) => name === part && times === 'cuts');
  const kills = lines.filter(isKill);
  const commits = [...new Set(lines.map(({ commit }) => commit))];
  const of = (part: string, store: string) => lines.filter((line) => line.part === part && line.store === store);
  const cell = (part: string, store: string) => {
    const own = of(part, store);
    const bad = own.filter(({ error }) => error !== undefined).length;
    const isTimed = PARTS.some(({ name, times }) => name === part && times === 'seconds');
    return own.length === 0 ? '–' : `${total(own)}${isTimed ? rate(own) : ''}${bad > 0 ? ` (${bad} runs failed)` : ''}`;
  };
  const rowsOf = (times: string) =>
    PARTS.filter((part) => part.times === times).map(({ name, what, file }) => [
      name,
      `${what} ([test](../${file}))`,
      cell(name, 'sqlite'),
      cell(name, 'postgres'),
    ]);
  const found = PARTS.flatMap(({ name }) =>
    ['sqlite', 'postgres'].flatMap((store) => {
      const counts = [...added(of(name, store).map((line) => line.found))].map(([what, count]) => `${what}: ${count}`);
      return counts.length === 0 ? [] : [[name, store, counts.toSorted().join('; ')]];
    }),
  );
  const failures =
    broken.length === 0
      ? 'None.'
      : table(
          ['when', 'part', 'store', 'failed invariant', 'command to reproduce'],
          broken.map((line) => [line.at, line.part, line.store, escaped(line.error ?? ''), `\`${again(line)}\``]),
        );
  return `# Proof: invariants under kills and faults

Written by \`npm run prove\`. ${lines[0]?.at.slice(0, 16) ?? ''} to ${lines.at(-1)?.at.slice(11, 16) ?? ''} UTC, of ${commits
    .map((commit) => `\`${commit}\``)
    .join(
      ', ',
    )}, on ${machine.cores} cores (${machine.cpu}), Linux ${machine.linux}, Node ${machine.node}, PostgreSQL ${machine.postgres}.

**${total(kills)} kills (SIGKILL): ${total(kills.filter(({ store }) => store === 'sqlite'))} on SQLite, ${total(kills.filter(({ store }) => store === 'postgres'))} on PostgreSQL.
${broken.length} of ${lines.length} runs failed.** A run is several kills on one store, one test of a fault, or one model or fuzzer for a given time.

## kill -9

A broker in its own process is killed at a random instant while it starts or serves requests. Another one starts on the same store, and all invariants
below are checked before the next kill.

${table(['part', 'work', 'SQLite', 'PostgreSQL'], rowsOf('cuts'))}

## Other faults

${table(['part', 'fault', 'SQLite', 'PostgreSQL'], rowsOf('once'))}

## Models and fuzzers

Random sequences of steps on a running broker and on a small model of it, and random inputs for the parsers of untrusted bytes: total, and number per
second. The seed of a run determines its steps and inputs.

${table(['part', 'inputs', 'SQLite', 'PostgreSQL'], rowsOf('seconds'))}

## Invariants

How often each was checked. A row and its receipt are counted once; calls, approvals, pushes and branches are checked, and counted, after each kill on
their store.

${table(
  ['invariant', 'checked'],
  [...added(held.map(({ checked }) => checked))].map(([name, count]) => [name, count]),
)}

## Counts

${table(['part', 'store', 'counts'], found)}

## Failures

${failures}
`;
}
