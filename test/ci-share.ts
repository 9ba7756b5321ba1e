/**
 * Prints which share of the long test files a CI run has time for: 1 on most machines, and less on one so slow that all of them would take longer
 * than CI may. `.ci/run` passes it on as LONG_FILES_SHARE.
 *
 *     node test/ci-share.ts
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

/** Time for the tests: CI may take 25 minutes, set-up included, which takes a twelfth of the time of the tests. */
const BUDGET_S = 20 * 60;
/** The part of a run that the files of `long-files.json` take. */
const LONG_PART = 0.85;
/** A smaller share would show too little: then the run takes longer. */
const MIN = 0.4;
const STARTS = 20;
/**
 * Ratio of a run of all tests to STARTS on all processors concurrently: 210, 210, 260 and 320 were measured (803 s to 3.8 s; parts of runs to 10.3 and
 * 8.0 s; 1,932 s to 6.0 s, in part under other load).
 */
const RUN_PER_STARTS = 280;

/** `startsS`: seconds of the measured starts. Returns the share, MIN to 1. */
export function shareFor(startsS: number): number {
  const whole = startsS * RUN_PER_STARTS;
  const share = (BUDGET_S / whole - (1 - LONG_PART)) / LONG_PART;
  return Math.min(1, Math.max(MIN, Math.round(share * 100) / 100));
}

/** Starts the command line STARTS times on each processor: it takes processor time as tests do, for compiling, memory and processes. */
async function measureStarts(): Promise<number> {
  const command = [join(import.meta.dirname, '..', 'bin', 'agent-broker.js'), 'doctor', '--help'];
  const start = async () => {
    const [code] = await once(spawn(process.execPath, command, { stdio: 'ignore' }), 'exit');
    if (code !== 0) throw new Error(`agent-broker doctor --help ended with ${code}`);
  };
  await start();
  const before = performance.now();
  await Promise.all(
    Array.from({ length: availableParallelism() }, async () => {
      for (let i = 0; i < STARTS; i++) await start();
    }),
  );
  return (performance.now() - before) / 1_000;
}

if (process.argv[1] === import.meta.filename) {
  const startsS = await measureStarts();
  console.error(`${STARTS} starts on each processor took ${startsS.toFixed(1)} s.`);
  console.log(shareFor(startsS));
}
