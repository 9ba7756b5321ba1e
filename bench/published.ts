/** The package as it is published, which is what is measured: built, where a checkout runs from its sources. */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writePackage } from '../build.ts';

/** Below node_modules, where what it imports is found. */
const FOLDER = join(import.meta.dirname, '..', 'node_modules', '.cache', 'bench-package');
let written: Promise<void> | undefined;

/** Its folder, written once for a run. */
export async function publishedPackage(): Promise<string> {
  written ??= write();
  await written;
  return FOLDER;
}

async function write(): Promise<void> {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  await writePackage(FOLDER);
}
