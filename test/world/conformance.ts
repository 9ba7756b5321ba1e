/** The outside suite of MCP: runs a scenario against a client, and judges its checks. */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { ROOT } from './checkout.ts';
import { newFolder } from './stores.ts';

const SUITE = join(ROOT, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');

/** What has to pass, and what cannot, with the reason: by check. */
export type Expected = { passes: string[]; cannot?: Record<string, string> };

type Check = { id: string; status: string; errorMessage?: string; description?: string };

/**
 * Runs a scenario with a program as the client, which gets the address of the suite's server as its last argument. Whatever is not expected
 * to fail, or to be warned of, must not; and what is expected to must.
 */
export async function conforms(
  scenario: string,
  program: string,
  { passes, cannot = {} }: Expected,
  env: Record<string, string> = {},
): Promise<void> {
  const folder = newFolder();
  const command = `${process.execPath} ${program}`;
  const args = ['client', '--command', command, '--scenario', scenario, '-o', folder];
  // It answers 1 when anything failed; what failed is in its files.
  await promisify(execFile)(process.execPath, [SUITE, ...args], {
    timeout: 60_000,
    env: { ...process.env, ...env },
  }).catch(() => undefined);
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const checks: Check[] = JSON.parse(
    readFileSync(join(folder, files.find((one) => one.endsWith('checks.json')) ?? 'checks.json'), 'utf8'),
  );
  const failed = checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING');
  const told = ({ id, errorMessage, description }: Check) => `${id}: ${errorMessage ?? description}`;
  expect(failed.filter(({ id }) => !(id in cannot)).map(told)).toEqual([]);
  const unexpected = Object.keys(cannot).filter((id) => !failed.some((check) => check.id === id));
  expect(unexpected, 'passes by now').toEqual([]);
  const passed = new Set(checks.filter(({ status }) => status === 'SUCCESS').map(({ id }) => id));
  expect(passes.filter((id) => !passed.has(id))).toEqual([]);
}
