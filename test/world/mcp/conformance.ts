/** Runs the MCP conformance suite against a client in this process, and checks the results of its scenarios. */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { ROOT } from '../checkout.ts';
import { listenOnLoopback } from '../listen.ts';
import { newFolder } from '../stores.ts';

const SUITE = join(ROOT, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
/** What the suite starts for each scenario. Not a Node program: starting one for each took most of the processor time of these tests. */
const PROGRAM = join(ROOT, 'test/world/mcp-conformance-client.sh');

/** Checks that have to pass, and those that cannot, with the reason. */
export type Expected = { passes: string[]; cannot?: Record<string, string> };

type Check = { id: string; status: string; errorMessage?: string; description?: string };

/**
 * Runs all client scenarios in one process of the suite, concurrently. `client`: connects to the suite's server at `url`; what it returns is the output of
 * the client. Returns a function that checks one scenario.
 */
export async function runAllScenarios(
  client: (scenario: string, url: string, context: string | undefined) => Promise<unknown>,
): Promise<(scenario: string, expected: Expected) => void> {
  const folder = newFolder();
  const control = createServer((request, response) => {
    text(request)
      .then((form) => {
        const given = new URLSearchParams(form);
        return client(given.get('scenario')!, given.get('url')!, given.get('context') ?? undefined);
      })
      .then(
        (done) => response.end(JSON.stringify(done)),
        (error: Error) => response.writeHead(500).end(error.stack),
      );
  });
  const port = await listenOnLoopback(control);
  // The suite exits with 1 when anything failed; its files have the details.
  const suite = [SUITE, 'client', '--command', `sh ${PROGRAM}`, '--suite', 'all', '--timeout', '120000', '-o', folder];
  await promisify(execFile)(process.execPath, suite, {
    timeout: 170_000,
    maxBuffer: Number.POSITIVE_INFINITY,
    env: { ...process.env, CONTROL_URL: `http://127.0.0.1:${port}` },
  }).catch(() => undefined);
  await new Promise((closed) => control.close(closed));
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
