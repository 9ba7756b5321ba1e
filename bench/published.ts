/** Builds the package as it is published, since the bench measures that and not the sources of the checkout. */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writePackage } from '../build.ts';

/** The folder is below node_modules, so that the package's imports are resolved. */
const FOLDER = join(import.meta.dirname, '..', 'node_modules', '.cache', 'bench-package');
let written: Promise<void> | undefined;

/** Returns the folder of the built package, which is written once per run. */
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
