/**
 * Set up once for a run (vitest's globalSetup): the programs that tests start, built as in the published package. From source
 * each of them takes twice as long to start, and the tests start many.
 */
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { writePrograms } from '../../build.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** A folder with `bin/agent-broker.js` and the `dist/` that it runs, laid out as the package is. */
    programs: string;
  }
}

const ROOT = join(import.meta.dirname, '..', '..');

export async function setup(project: TestProject): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), 'agent-broker-programs-'));
  await writePrograms(join(folder, 'dist'), { 'child-broker': 'test/world/child-broker.ts' });
  cpSync(join(ROOT, 'bin', 'agent-broker.js'), join(folder, 'bin', 'agent-broker.js'));
  for (const name of ['package.json', 'governance.schema.json', 'CHANGELOG.md', 'docs', 'node_modules'])
    symlinkSync(join(ROOT, name), join(folder, name));
  project.provide('programs', folder);
  return () => rmSync(folder, { recursive: true });
}
