/** The findings as text for a terminal. */
import type { AnswerCost } from './answers.ts';
import type { GitFindings } from './git.ts';
import { type Goal, milliseconds, percent, thousands } from './goals.ts';
import { median, paired, quantile, type Sample, typical } from './measure.ts';
import { CONNECTIONS, type Findings } from './plan.ts';
import { NAMES } from './stage.ts';
import type { WaitingFindings } from './waiting.ts';

/** Returns all measurements and the goals as text. Figures are medians over the rounds. */
export function describe(findings: Findings, goals: readonly Goal[]): string {
  const { many, one, answers, streams, brokers } = findings;
  const parts = [
    title(`${CONNECTIONS} connections`),
    rates(many),
    title('1 connection: latency added'),
    latencies(one),
    title('Reading an answer, with the search for the credential'),
    answerCosts([...answers, ...streams]),
  ];
  for (const [store, found] of brokers) {
    parts.push(title(`Agents stored, ${store}, ${CONNECTIONS} connections`), scales(found.scale));
    parts.push(title(`Memory, ${store}`), memory(found.atRest, found.memory));
    if (found.git?.streams) parts.push(title('Governed git'), gitFigures(found.git.streams));
    if (found.waiting) parts.push(title(`Agents that wait for a person, ${store}`), waitingFigures(found.waiting));
  }
  if (goals.length > 0) parts.push(title('Promised and measured'), promises(goals));
  return `${parts.join('\n')}\n`;
}

function rates(samples: Findings['many']): string {
  const header = ['', 'calls/s', 'of nginx', 'of forwarder', 'p50', 'p90', 'p99', 'max', 'CPU a call'];
  const share = (a: readonly Sample[], name: string) => {
    const value = paired(a, samples.get(name) ?? [], (x, y) => x.rate / y.rate);
    return Number.isFinite(value) ? percent(value) : '–';
  };
  const rows = [...samples].map(([name, runs]) => [
    name,
    thousands(typical(runs, (run) => run.rate)),
    share(runs, NAMES.nginx),
    share(runs, NAMES.forwarder),
    ...(['p50', 'p90', 'p99', 'max'] as const).map((at) => milliseconds(typical(runs, (run) => run.latency[at]))),
    micros(typical(runs, (run) => run.cpuMicros)),
  ]);
  return table(header, rows);
}

function latencies(samples: Findings['one']): string {
  const header = ['', 'p50', 'p99', 'p50 over upstream', 'p50 over nginx', 'p99 over nginx'];
  const over = (runs: readonly Sample[], name: string, at: 'p50' | 'p99') => {
    if (runs === samples.get(name)) return '–';
    const value = paired(runs, samples.get(name) ?? [], (a, b) => a.latency[at] - b.latency[at]);
    return Number.isFinite(value) ? milliseconds(value) : '–';
  };
  const rows = [...samples].map(([name, runs]) => [
    name,
    milliseconds(typical(runs, (run) => run.latency.p50)),
    milliseconds(typical(runs, (run) => run.latency.p99)),
    over(runs, NAMES.upstream, 'p50'),
    over(runs, NAMES.nginx, 'p50'),
    over(runs, NAMES.nginx, 'p99'),
  ]);
  return table(header, rows);
}

function answerCosts(costs: readonly AnswerCost[]): string {
  const rows = costs.map(({ name, bytes, micros: runs }) => [name, thousands(bytes), micros(median(runs))]);
  return table(['', 'bytes', 'CPU'], rows);
}

function scales(scale: readonly { agents: number; samples: Sample[] }[]): string {
  const rows = scale.map(({ agents, samples }) => [
    thousands(agents),
    thousands(typical(samples, (run) => run.rate)),
    milliseconds(typical(samples, (run) => run.latency.p50)),
    micros(typical(samples, (run) => run.cpuMicros)),
  ]);
  return table(['agents', 'calls/s', 'p50', 'CPU a call'], rows);
}

function memory(atRest: number, readings: readonly { calls: number; bytes: number }[]): string {
  const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;
  const rows = readings.map(({ calls, bytes }) => [`${thousands(calls)} more calls`, megabytes(bytes)]);
  return table(['', 'resident'], [['at rest, before any call', megabytes(atRest)], ...rows]);
}

function waitingFigures({ agents, bytes, load, statements, decided, shown }: WaitingFindings): string {
  const each = (values: readonly number[]) =>
    `${milliseconds(median(values))} in the middle, ${milliseconds(Math.max(...values))} at most`;
  const rate = (value: number) => (Number.isFinite(value) ? `${value.toFixed(1)}/s` : 'not counted');
  const rows = [
    ['agents, each on a connection', thousands(agents)],
    ['resident memory for them', `${(bytes / 1e6).toFixed(0)} MB`],
    ['CPU while nothing happens', `${percent(load.waiting)} of a core (${percent(load.alone)} without them)`],
    ['transactions while nothing happens', `${rate(statements.waiting)} (${rate(statements.alone)} without them)`],
    [`decision to the agent's answer`, each(decided)],
    [`202 to the owner's page`, each(shown)],
  ];
  return table(['', ''], rows);
}

function gitFigures({ clone, push, chunked, clones, refs }: GitFindings): string {
  const megabytes = (rate: number) => `${(rate / 1e6).toFixed(0)} MB/s`;
  const p50 = (values: readonly number[]) => milliseconds(quantile(values, 0.5));
  const side = (name: string, of: 'broker' | 'nginx') => [
    name,
    megabytes(median(clone[of])),
    megabytes(median(push[of])),
    megabytes(median(chunked[of])),
    megabytes(clones[of]),
    p50(refs[of]),
  ];
  const header = ['', 'clone of 500 MiB', 'push of 500 MiB', 'in chunks', '20 clones of 50 MiB', 'info/refs, p50'];
  return table(header, [side('broker', 'broker'), side('nginx', 'nginx')]);
}

function promises(goals: readonly Goal[]): string {
  const word = (met: boolean | undefined) => (met === undefined ? '–' : met ? 'met' : 'MISSED');
  const rows = goals.map(({ name, target, measured, met }) => [name, target, measured, word(met)]);
  return table(['', 'target', 'measured', ''], rows);
}

function micros(value: number): string {
  return `${value.toFixed(1)} µs`;
}

function title(text: string): string {
  return `\n${text}\n${'─'.repeat(text.length)}`;
}

/** Formats a table: columns are as wide as their widest cell; the first is left-aligned, figures are right-aligned. */
function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((name, at) => Math.max(name.length, ...rows.map((row) => row[at]?.length ?? 0)));
  return [header, ...rows]
    .map((row) =>
      row.map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join('  '),
    )
    .map((line) => line.trimEnd())
    .join('\n');
}
