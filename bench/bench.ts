/** `npm run bench`: measures the broker against nginx and a bare forwarder on this machine, on loopback only. */
import { statfsSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { wholeNumber } from './bench-options.ts';
import { brokerStarter } from './broker-target.ts';
import { cleanupStack } from './cleanup.ts';
import { judge } from './goals.ts';
import { benchMemory, MEMORY_USAGE, readMemoryOptions } from './memory.ts';
import { benchNeighbours, NEIGHBOURS_USAGE, readNeighboursOptions } from './neighbours.ts';
import { benchObservability, OBSERVABILITY_USAGE, readObservabilityOptions } from './observability.ts';
import { type Plan, runPlan } from './plan.ts';
import { benchLimits, LIMITS_USAGE, readLimitsOptions } from './rate-limits.ts';
import { benchLog, LOG_USAGE, readLogOptions } from './receipt-log.ts';
import { describe } from './report.ts';
import { benchScale, readScaleOptions, SCALE_USAGE } from './scale.ts';
import { readSoakOptions, SOAK_USAGE, soak } from './soak.ts';
import { type StartBroker, type Store, setStage } from './stage.ts';
import { benchVerify, readVerifyOptions, VERIFY_USAGE } from './verify-log.ts';

const USAGE = `Usage: npm run bench -- [--quick] [--json FILE] [--calls N] [--rounds N] [--stores sqlite,postgres] [--strict]

  --quick          four minutes instead of ten, with less certain figures; processes are not warm by then
  --json FILE      writes everything that was measured
  --calls N        governed calls of the memory phase on each store (100000; --quick: 10000)
  --rounds N       rounds of every comparison (5; --quick: 2)
  --stores LIST    sqlite, postgres or both (both, where PostgreSQL is installed)
  --strict         exit code 1 when a target is missed, too
`;

type Options = { plan: Plan; json: string | undefined; strict: boolean };

/** Parses the command line. Throws an Error with a message for the user. */
export function readOptions(args: readonly string[]): Options {
  const flag = { type: 'boolean', default: false } as const;
  const text = { type: 'string' } as const;
  const options = { quick: flag, strict: flag, json: text, calls: text, rounds: text, stores: text };
  const { values } = parseArgs({ args: [...args], options });
  const stores = (values.stores ?? 'sqlite,postgres').split(',');
  const unknown = stores.find((store) => store !== 'sqlite' && store !== 'postgres');
  if (unknown !== undefined) throw new Error(`--stores: ${unknown} is not a store; take sqlite, postgres or both.`);
  const plan: Plan = {
    stores: stores as Store[],
    rounds: wholeNumber('--rounds', values.rounds, values.quick ? 2 : 5, 50),
    warmUpCalls: values.quick ? 15_000 : 60_000,
    calls: wholeNumber('--calls', values.calls, values.quick ? 10_000 : 100_000, 5_000_000),
    measureMs: values.quick ? 1_000 : 2_500,
    agents: 1_000,
    waiting: 2_000,
    scales: values.quick ? [10, 1_000] : [10, 1_000, 100_000],
    streamSeconds: values.quick ? 5 : 60,
  };
  return { plan, json: values.json, strict: values.strict };
}

/** Runs the bench and returns the exit code: 1 when a run had errors, or, with `--strict`, when a target was missed. */
export async function bench(options: Options, start: StartBroker): Promise<number> {
  const { plan, json, strict } = options;
  const startedAt = performance.now();
  await using stack = cleanupStack();
  const stage = await setStage(stack, start, plan.stores);
  const { versions } = stage;
  const machine = {
    cores: availableParallelism(),
    cpu: cpus()[0]?.model ?? 'unknown',
    node: process.version,
    ...versions,
  };
  process.stdout.write(`${machine.cores} cores (${machine.cpu}), Node ${machine.node}, `);
  process.stdout.write(`nginx ${versions.nginx ?? 'not installed'}, PostgreSQL ${versions.postgres ?? 'not used'}\n`);
  if (onTmpfs()) process.stdout.write(`${tmpdir()} is in memory, so nothing here is durable: set TMPDIR to a disk.\n`);

  const findings = await runPlan(stage, plan, (line) => process.stderr.write(`${line}\n`));
  const goals = judge(findings);
  const { wrong } = findings;
  process.stdout.write(describe(findings, goals));
  if (findings.brokers.size === 0) process.stdout.write('\nNo broker was measured.\n');
  for (const [what, count] of wrong) process.stdout.write(`Wrong: ${what}, ${count} times\n`);
  process.stdout.write(`\nTook ${Math.round((performance.now() - startedAt) / 1_000)} s.\n`);
  if (json !== undefined) writeFileSync(json, asJson({ machine, plan, goals, ...findings }));
  return wrong.size > 0 || (strict && goals.some(({ met }) => met === false)) ? 1 : 0;
}

function asJson(value: object): string {
  const plain = (_name: string, one: unknown) => (one instanceof Map ? Object.fromEntries(one) : one);
  return `${JSON.stringify(value, plain, 2)}\n`;
}

/** Whether the temporary folder is in memory: a store there never waits for a disk, which improves the figures. TMPFS_MAGIC as in statfs(2). */
function onTmpfs(): boolean {
  return statfsSync(tmpdir()).type === 0x01021994;
}

const USAGES = new Map([
  ['soak', SOAK_USAGE],
  ['memory', MEMORY_USAGE],
  ['observability', OBSERVABILITY_USAGE],
  ['limits', LIMITS_USAGE],
  ['neighbours', NEIGHBOURS_USAGE],
  ['log', LOG_USAGE],
  ['scale', SCALE_USAGE],
  ['verify', VERIFY_USAGE],
]);
const usageOf = (command = ''): string => USAGES.get(command) ?? USAGE;

if (import.meta.main) {
  const args = process.argv.slice(2);
  try {
    if (args.includes('--help')) process.stdout.write([USAGE, ...USAGES.values()].join('\n'));
    else if (args[0] === 'soak') process.exitCode = await soak(readSoakOptions(args.slice(1)), brokerStarter());
    else if (args[0] === 'memory')
      process.exitCode = await benchMemory(readMemoryOptions(args.slice(1)), brokerStarter());
    else if (args[0] === 'observability')
      process.exitCode = await benchObservability(readObservabilityOptions(args.slice(1)), brokerStarter());
    else if (args[0] === 'limits')
      process.exitCode = await benchLimits(readLimitsOptions(args.slice(1)), brokerStarter());
    else if (args[0] === 'neighbours')
      process.exitCode = await benchNeighbours(readNeighboursOptions(args.slice(1)), brokerStarter());
    else if (args[0] === 'scale') process.exitCode = await benchScale(readScaleOptions(args.slice(1)));
    else if (args[0] === 'verify') process.exitCode = await benchVerify(readVerifyOptions(args.slice(1)));
    else if (args[0] === 'log') process.exitCode = await benchLog(readLogOptions(args.slice(1)));
    else process.exitCode = await bench(readOptions(args), brokerStarter());
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    const aboutUsage = message.startsWith('--') || code?.startsWith('ERR_PARSE_ARGS');
    process.stderr.write(aboutUsage ? `${message}\n\n${usageOf(args[0])}` : `The bench failed: ${message}\n`);
    process.exitCode = aboutUsage ? 2 : 1;
  }
}
