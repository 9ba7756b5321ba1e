/** `npm run bench -- limits`: the cost of rate limits shared by replicas, in CPU microseconds per call. */

import { parseArgs } from 'node:util';
import { wholeNumber } from './bench-options.ts';
import { cleanupStack } from './cleanup.ts';
import { type Compared, type Comparison, compareBrokers } from './compare.ts';
import { startPostgres } from './postgres.ts';
import type { StartBroker } from './stage.ts';

export const LIMITS_USAGE = `Usage: npm run bench -- limits [--rounds N] [--seconds N] [--calls N] [--redis URL]

  --rounds N       rounds of a run each: limits of each process, the same once more, in PostgreSQL, in Redis (10)
  --seconds N      length of a run (5)
  --calls N        calls of each broker before (60000)
  --redis URL      a Redis or Valkey to count in; without it that is left out
`;

export type LimitsOptions = Comparison & { redis: string | undefined };

/** Parses the command line. Throws an Error with a message for the user. */
export function readLimitsOptions(args: readonly string[]): LimitsOptions {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({ args: [...args], options: { rounds: text, seconds: text, calls: text, redis: text } });
  return {
    rounds: wholeNumber('--rounds', values.rounds, 10, 100),
    seconds: wholeNumber('--seconds', values.seconds, 5, 600),
    calls: wholeNumber('--calls', values.calls, 60_000, 10_000_000),
    redis: values.redis,
  };
}

/** Runs the bench on a PostgreSQL of its own and prints the results. Returns the exit code: 1 when a run had errors. */
export async function benchLimits({ redis, ...how }: LimitsOptions, start: StartBroker): Promise<number> {
  await using stack = cleanupStack();
  const postgres = await startPostgres();
  if (!postgres) throw new Error('PostgreSQL is not installed here.');
  stack.defer(() => postgres.stop());
  const each = { RATE_LIMIT_URL: 'none' };
  const kinds: [name: string, settings: Record<string, string>][] = [
    ['each process for itself', each],
    // The difference between two equal brokers is the measurement noise of this machine.
    ['the same, once more', each],
    ['in PostgreSQL', {}],
    ...(redis === undefined ? [] : [['in Redis', { RATE_LIMIT_URL: redis }] as [string, Record<string, string>]]),
  ];
  const compared: Compared[] = [];
  for (const [name, settings] of kinds) {
    const databaseUrl = await postgres.createDatabase(`limits_${compared.length}`);
    compared.push({ name, settings, store: { store: 'postgres', databaseUrl }, pids: [postgres.pid] });
  }
  const { lines, isRight } = await compareBrokers(stack, start, compared, how);
  const title = `Of whole brokers and PostgreSQL, ${how.rounds} rounds of ${how.seconds} s each:`;
  process.stdout.write(['', title, ...lines, ''].join('\n'));
  return isRight ? 0 : 1;
}
