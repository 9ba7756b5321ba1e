/**
 * Runs once per test run (vitest's globalSetup): builds the programs that tests start, as in the published package. From source each of them takes
 * twice as long to start, and the tests start many.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { writePackage } from '../../../build.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** A folder with `bin/agent-broker.js` and the `dist/` that it runs, laid out as the package is. */
    programs: string;
  }
}

export async function setup(project: TestProject): Promise<() => void> {
  // Given by the run that started this one, which only lists tests.
  const { AGENT_BROKER_TEST_PROGRAMS: given } = process.env;
  if (given) {
    project.provide('programs', given);
    return () => {};
  }
  const folder = mkdtempSync(join(tmpdir(), 'agent-broker-programs-'));
  await writePackage(folder, { 'child-broker': 'test/world/child-broker.ts' });
  project.provide('programs', folder);
  // For the processes of vitest, which are started later: each broker on SQLite starts a thread from source, and stripping the types of its modules
  // takes twice as long as everything else until it writes.
  process.env.NODE_COMPILE_CACHE = join(folder, 'compile-cache');
  return () => rmSync(folder, { recursive: true });
}
