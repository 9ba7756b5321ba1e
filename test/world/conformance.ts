/** Runs scenarios of the MCP conformance suite against a client, and checks their results. */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { ROOT } from './checkout.ts';
import { newFolder } from './stores.ts';

const SUITE = join(ROOT, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');

/** Checks that have to pass, and those that cannot, with the reason. */
export type Expected = { passes: string[]; cannot?: Record<string, string> };

type Check = { id: string; status: string; errorMessage?: string; description?: string };

/** Runs a scenario with a program as the client, which gets the address of the suite's server as its last argument, and checks the results. */
export async function conforms(scenario: string, program: string, expected: Expected): Promise<void> {
  const judge = await runSuite(['--scenario', scenario], program);
  judge(scenario, expected);
}

/**
 * Runs all client scenarios in one process of the suite, concurrently; the program gets its scenario in MCP_CONFORMANCE_SCENARIO. Returns a function
 * that checks one scenario.
 */
export const runAllScenarios = (program: string, env: Record<string, string>) =>
  runSuite(['--suite', 'all', '--timeout', '120000'], program, env);

async function runSuite(
  which: readonly string[],
  program: string,
  env: Record<string, string> = {},
): Promise<(scenario: string, expected: Expected) => void> {
  const folder = newFolder();
  const command = `${process.execPath} ${program}`;
  // The suite exits with 1 when anything failed; its files have the details.
  await promisify(execFile)(process.execPath, [SUITE, 'client', '--command', command, ...which, '-o', folder], {
    timeout: which.includes('--suite') ? 170_000 : 60_000,
    maxBuffer: Number.POSITIVE_INFINITY,
    env: { ...process.env, ...env },
  }).catch(() => undefined);
  return (scenario, expected) => judge(folder, scenario, expected);
}

/** Checks that exactly the expected failures and warnings occurred. */
function judge(folder: string, scenario: string, { passes, cannot = {} }: Expected): void {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  // A scenario's files are in a folder named after it and the time.
  const named = files.find(
    (one) =>
      one.endsWith('checks.json') && /^-\d{4}-\d\d-\d\dT/.test(one.slice(scenario.length)) && one.startsWith(scenario),
  );
  const checks: Check[] = JSON.parse(readFileSync(join(folder, named ?? 'checks.json'), 'utf8'));
  const failed = checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING');
  const told = ({ id, errorMessage, description }: Check) => `${id}: ${errorMessage ?? description}`;
  expect(failed.filter(({ id }) => !(id in cannot)).map(told)).toEqual([]);
  const unexpected = Object.keys(cannot).filter((id) => !failed.some((check) => check.id === id));
  expect(unexpected, 'passes by now').toEqual([]);
  const passed = new Set(checks.filter(({ status }) => status === 'SUCCESS').map(({ id }) => id));
  expect(passes.filter((id) => !passed.has(id))).toEqual([]);
}
