/** Turns this build into a later release with a migration of its own. */
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { PROGRAMS } from './checkout.ts';
import { ROOT } from './root.ts';
import { newFolder } from './stores.ts';

/** The tested release, and the next one. */
export const RELEASE = (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }).version;
const [major, minor] = RELEASE.split('.').map(Number);
export const NEXT_RELEASE = `${major}.${(minor ?? 0) + 1}.0`;

/** Builds the next release: with a migration that adds a column, and the contraction of it. Returns its folder. */
export function nextRelease(): string {
  const folder = newFolder();
  cpSync(PROGRAMS, folder, { recursive: true, verbatimSymlinks: true });
  const manifest = join(folder, 'package.json');
  const own = readFileSync(manifest, 'utf8');
  // It may be a link to the checkout's file.
  rmSync(manifest);
  writeFileSync(manifest, JSON.stringify({ ...JSON.parse(own), version: NEXT_RELEASE }));
  replaceOnce(
    folder,
    '"0043-releases": {',
    `"0999-shade": { readableBy: "${RELEASE}", up: (db) => db.schema.alterTable("agents").addColumn("shade", "text").execute() }, "0043-releases": {`,
  );
  replaceOnce(
    folder,
    'const contractions = {};',
    `const contractions = { "0001-shade": { readableBy: "${NEXT_RELEASE}", up: (db) => db.schema.alterTable("agents").dropColumn("shade").execute() } };`,
  );
  return folder;
}

function replaceOnce(folder: string, text: string, by: string): void {
  const files = readdirSync(join(folder, 'dist'))
    .filter((name) => name.endsWith('.js'))
    .map((name) => join(folder, 'dist', name))
    .filter((file) => readFileSync(file, 'utf8').includes(text));
  expect(files, text).not.toEqual([]);
  for (const file of files)
    writeFileSync(
      file,
      readFileSync(file, 'utf8').replace(text, () => by),
    );
}
