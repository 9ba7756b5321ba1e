/** `npm run bench -- observability`: the cost of metrics and traces per call, in CPU microseconds. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { wholeNumber } from './bench-options.ts';
import { cleanupStack } from './cleanup.ts';
import { compareBrokers } from './compare.ts';
import { measureInstruments } from './instruments.ts';
import { median } from './measure.ts';
import type { StartBroker } from './stage.ts';

export const OBSERVABILITY_USAGE = `Usage: npm run bench -- observability [--rounds N] [--seconds N] [--calls N] [--alone]

  --rounds N       rounds of four runs each: nothing measured, the same once more, metrics, metrics and 1 % of traces (10)
  --seconds N      length of a run (5)
  --calls N        calls of each broker before (60000)
  --alone          without brokers: what a call does of metrics and traces, and nothing else of it
`;

export type ObservabilityOptions = { rounds: number; seconds: number; calls: number; alone: boolean };

/** Parses the command line. Throws an Error with a message for the user. */
export function readObservabilityOptions(args: readonly string[]): ObservabilityOptions {
  const text = { type: 'string' } as const;
  const alone = { type: 'boolean', default: false } as const;
  const { values } = parseArgs({ args: [...args], options: { rounds: text, seconds: text, calls: text, alone } });
  return {
    rounds: wholeNumber('--rounds', values.rounds, 10, 100),
    seconds: wholeNumber('--seconds', values.seconds, 5, 600),
    calls: wholeNumber('--calls', values.calls, 60_000, 10_000_000),
    alone: values.alone,
  };
}

/** The goal: CPU microseconds per call for metrics and 1 % of traces together. */
const GOAL_MICROS = 6;

/** Runs the bench and prints the results. Returns the exit code: 1 when a run had errors. */
export async function benchObservability(
  { rounds, seconds, calls, alone }: ObservabilityOptions,
  start: StartBroker,
): Promise<number> {
  process.stdout.write(`The goal is at most ${GOAL_MICROS} µs of CPU a call.\n\n${await describeAlone(rounds)}`);
  if (alone) return 0;
  await using stack = cleanupStack();
  const collector = await startCollector(stack);
  const store = { store: 'sqlite' } as const;
  const off = { AGENT_BROKER_METRICS: 'off' };
  const compared = [
    { name: 'nothing', store, settings: off },
    // The difference between two equal brokers is the measurement noise of this machine.
    { name: 'nothing, once more', store, settings: off },
    { name: 'metrics', store, settings: {} },
    { name: 'metrics and 1 % of traces', store, settings: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url } },
  ];
  const { lines, isRight } = await compareBrokers(stack, start, compared, { rounds, seconds, calls });
  process.stdout.write(
    [
      '',
      `Of whole brokers on SQLite, ${rounds} rounds of ${seconds} s each:`,
      ...lines,
      `the collector got ${collector.requests()} requests`,
      '',
    ].join('\n'),
  );
  return isRight ? 0 : 1;
}

/** Describes the cost of the instruments measured alone: on a busy machine, small differences are lost in the noise of whole brokers. */
async function describeAlone(rounds: number): Promise<string> {
  const costs = await measureInstruments(rounds);
  const [nothing] = costs;
  const lines = costs.slice(1).map(({ name, micros }) => {
    const each = micros.map((one, at) => one - (nothing?.micros[at] ?? Number.NaN));
    return `${name.padEnd(28)} ${median(each).toFixed(1)} µs of CPU a call (${each.map((one) => one.toFixed(1)).join(' ')})`;
  });
  return `What a call does of them, alone, in ${rounds} rounds:\n${lines.join('\n')}\n`;
}

/** Starts a collector in this process, so that its CPU time does not count for the broker. */
async function startCollector(stack: AsyncDisposableStack): Promise<{ url: string; requests(): number }> {
  let requests = 0;
  const server = createServer((request, response) => {
    requests++;
    request.resume().once('end', () => response.end());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stack.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests: () => requests };
}
