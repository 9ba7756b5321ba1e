/** Compares brokers with different settings by the CPU time of a governed read. */

import { present } from '../broker/runtime/present.ts';
import type { BrokerOptions } from './broker-target.ts';
import { keeper } from './cleanup.ts';
import { startLoadGenerator } from './generator.ts';
import {
  type Load,
  type Meter,
  measure,
  measureInRounds,
  median,
  paired,
  type Sample,
  type Target,
} from './measure.ts';
import { CONNECTIONS } from './plan.ts';
import { forkChild } from './process.ts';
import { governedRead } from './requests.ts';
import type { StartBroker } from './stage.ts';
import { createTokenBatch } from './tokens.ts';

const AGENTS = 100;

export type Comparison = { rounds: number; seconds: number; calls: number };

/** `pids`: processes whose CPU time counts in addition to the broker's. */
export type Compared = {
  name: string;
  settings: Readonly<Record<string, string>>;
  store: { store: 'sqlite' } | { store: 'postgres'; databaseUrl: string };
  pids?: readonly number[];
};

/**
 * Starts these brokers on `stack`, warms them up with `calls` calls each, and measures them in turn: `rounds` runs of `seconds` each. Returns
 * lines of text with the additional CPU time of each compared to the first, and whether all answers were right.
 */
export async function compareBrokers(
  stack: AsyncDisposableStack,
  start: StartBroker,
  compared: readonly Compared[],
  { rounds, seconds, calls }: Comparison,
): Promise<{ lines: string[]; isRight: boolean }> {
  const keep = keeper(stack);
  const upstream = keep(await forkChild('upstream.ts', {}));
  const upstreamUrl = `http://127.0.0.1:${(upstream.said as { port: number }).port}`;
  const generator = await startLoadGenerator();
  keep(generator.child);
  const targets: Target[] = [];
  for (const { name, settings, store, pids = [] } of compared) {
    const options: BrokerOptions = { ...store, agents: AGENTS, callers: AGENTS, upstreamUrl, settings };
    const broker = keep(present(await start(options), 'broker'));
    const batch = createTokenBatch(broker.agents, AGENTS, Date.now);
    const port = Number(new URL(broker.baseUrl).port);
    targets.push({ name, port, pids: [broker.pid, ...pids], requests: () => batch.fresh().map(governedRead) });
  }
  const meter: Meter = { generator, tell: (line) => process.stderr.write(`${line}\n`), wrong: new Map() };
  const load: Load = { connections: CONNECTIONS, warmupMs: 500, measureMs: seconds * 1_000 };
  for (const one of targets) await warmUp(meter, one, calls);
  const samples = new Map<string, Sample[]>();
  for (let round = 0; round < rounds; round++) {
    // Each target is first equally often, since the first one is disturbed by leftover work of the previous round.
    const first = round % targets.length;
    const order = [...targets.slice(first), ...targets.slice(0, first)];
    for (const [name, one] of await measureInRounds(meter, order, load, 1))
      samples.set(name, [...(samples.get(name) ?? []), ...one]);
  }
  const of = ({ name }: Target) => samples.get(name) ?? [];
  const [plain] = targets.map(of);
  const lines = targets.map((one) => {
    const own = of(one);
    const more = paired(own, plain ?? [], (a, b) => a.cpuMicros - b.cpuMicros);
    const each = own.map(({ cpuMicros }, at) => cpuMicros - (plain?.[at]?.cpuMicros ?? Number.NaN));
    const shown = one === targets[0] ? '' : `, ${signed(more)} (${each.map(signed).join(' ')})`;
    return `${one.name.padEnd(28)} ${median(own.map(({ cpuMicros }) => cpuMicros)).toFixed(1)} µs of CPU a call${shown}`;
  });
  const wrong = [...meter.wrong].map(([what, count]) => `Wrong: ${what}, ${count} times`);
  return { lines: [...lines, ...wrong], isRight: wrong.length === 0 };
}

/** Makes this number of calls, in as many runs as that takes. */
async function warmUp(meter: Meter, target: Target, calls: number): Promise<void> {
  for (let made = 0; made < calls; ) {
    const load = { connections: CONNECTIONS, warmupMs: 0, measureMs: 20_000, mostCalls: calls - made };
    const { answered } = await measure(meter, target, load);
    if (answered === 0) throw new Error(`${target.name} answered nothing`);
    made += answered;
    meter.tell(`${target.name}: ${made} calls to warm up`);
  }
}

const signed = (micros: number): string => `${micros < 0 ? '' : '+'}${micros.toFixed(1)}`;
