/** Measures targets in turn, round after round, so that a slow minute of the machine affects all of them. */
import { setTimeout as wait } from 'node:timers/promises';
import type { LoadGenerator, LoadReport } from './generator.ts';
import { cpuSeconds } from './process.ts';

export type Target = {
  name: string;
  port: number;
  /** Returns the requests to send. Called just before each run, so that tokens are fresh. */
  requests(): readonly Uint8Array[];
  /** Processes whose CPU time counts for this target, including their descendants. */
  pids: readonly number[];
};

/** One run. `cpuMicros`: CPU microseconds of the target's processes for each answer. */
export type Sample = LoadReport & { cpuMicros: number };

export type Load = { connections: number; warmupMs: number; measureMs: number; mostCalls?: number };

/** Shared by all runs. `wrong` counts the answers other than 200, by target and status or error. */
export type Meter = { generator: LoadGenerator; tell(text: string): void; wrong: Map<string, number> };

/** Runs one load on one target. */
export async function measure(meter: Meter, target: Target, load: Load): Promise<Sample> {
  const { name, port, pids } = target;
  const requests = target.requests();
  const before = cpuSeconds(pids);
  const order = { host: '127.0.0.1', port, requests, mostCalls: 100_000_000, ...load };
  const report = await meter.generator.run(order);
  const cpuMicros = ((cpuSeconds(pids) - before) * 1_000_000) / Math.max(1, report.answered);
  for (const [what, count] of [...Object.entries(report.statuses), ...Object.entries(report.errors)]) {
    const where = `${name}: ${what}`;
    if (what !== '200') meter.wrong.set(where, (meter.wrong.get(where) ?? 0) + count);
  }
  return { ...report, cpuMicros };
}

/** Returns the samples of each target by name, one per round, in the order A B C A B C …, never A A B B. */
export async function measureInRounds(
  meter: Meter,
  targets: readonly Target[],
  load: Load,
  rounds: number,
): Promise<Map<string, Sample[]>> {
  const samples = new Map<string, Sample[]>(targets.map(({ name }) => [name, []]));
  for (let round = 1; round <= rounds; round++) {
    for (const target of targets) {
      const sample = await measure(meter, target, load);
      samples.get(target.name)?.push(sample);
      meter.tell(`round ${round} of ${rounds}, ${target.name}: ${Math.round(sample.rate)}/s`);
      // Wait, so that leftover work of the last target (garbage collection, disk writes) does not affect the next one.
      await wait(100);
    }
  }
  return samples;
}

/** Loads each target until its code is compiled and its caches are full. Only the number of calls in the samples is meaningful. */
export async function warmUp(
  meter: Meter,
  targets: readonly Target[],
  mostCalls: number,
): Promise<Map<string, Sample[]>> {
  meter.tell('warming up');
  const load = { connections: 32, warmupMs: 0, measureMs: 20_000, mostCalls };
  const samples = new Map<string, Sample[]>();
  for (const target of targets) samples.set(target.name, [await measure(meter, target, load)]);
  return samples;
}

/** Returns the middle value, or the mean of the two middle ones of an even count; NaN for an empty list. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  const [above = Number.NaN, below = above] =
    sorted.length % 2 === 1 ? [sorted[half]] : [sorted[half], sorted[half - 1]];
  return (below + above) / 2;
}

/** Returns the smallest value that this share of all values does not exceed. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

/** Median over the rounds of one figure of the samples. */
export function typical(samples: readonly Sample[], figure: (sample: Sample) => number): number {
  return median(samples.map(figure));
}

/** Median over the rounds of a figure made of two targets in the same round, so that both were measured under the same conditions. */
export function paired(a: readonly Sample[], b: readonly Sample[], figure: (a: Sample, b: Sample) => number): number {
  return median(a.flatMap((sample, at) => (b[at] ? [figure(sample, b[at])] : [])));
}
