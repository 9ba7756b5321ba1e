/** Writes a backup: a copy of the store and its manifest; either both exist completely or neither. */
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { missingFolder } from '../runtime/missing-folder.ts';
import { syncFile, syncFolder } from '../runtime/sync-file.ts';
import { type BackupManifest, type CopiedState, hashFile, manifestOf, writeManifest } from './backup-manifest.ts';
import { makePrivate } from './lock.ts';

/** Partial files older than this were left by a killed backup. */
const ABANDONED_MS = 3_600_000;

/** Of SQLite: it stays where a change of the copy was cut off, or did not fit on the disk. */
const journalOf = (partial: string): string => `${partial}-journal`;

/** Names of what a backup writes before it is whole. */
const PARTIAL = /\.partial(\.manifest\.json|-journal)?$/;

/**
 * Creates the file `to` (mode 0600) and its manifest. `copy` writes the store into an empty file and returns what it copied. Throws on
 * failure; then there is no file `to`.
 */
export async function writeBackup(
  to: string,
  { version, now }: { version: string; now: number },
  copy: (partial: string) => Promise<CopiedState> | CopiedState,
): Promise<BackupManifest> {
  refuseThere(to);
  removeLeft(to, now);
  // A unique name, so that of two concurrent backups to one file, as by jobs on two machines, neither touches the other's copy.
  const partial = `${to}.${randomUUID()}.partial`;
  const manifestFile = manifestOf(to);
  try {
    makePrivate(partial);
    const copied = await copy(partial);
    syncFile(partial);
    const manifest: BackupManifest = {
      format: 1,
      made_at: new Date(now).toISOString(),
      version,
      ...copied,
      bytes: statSync(partial).size,
      sha256: await hashFile(partial),
    };
    const partialManifest = manifestOf(partial);
    writeManifest(partialManifest, manifest);
    // Another backup may have created it meanwhile.
    refuseThere(to);
    // The manifest first: every backup that exists has its manifest.
    renameSync(partialManifest, manifestFile);
    renameSync(partial, to);
    syncFolder(dirname(to));
    return manifest;
  } catch (error) {
    for (const file of [partial, manifestOf(partial), journalOf(partial)]) rmSync(file, { force: true });
    throw error;
  }
}

function refuseThere(to: string): void {
  if (existsSync(to)) throw new Error(`${to} already exists. Name a new file.`);
  const missing = missingFolder(to);
  if (missing !== undefined) throw new Error(missing);
}

function removeLeft(to: string, now: number): void {
  const folder = dirname(to);
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    if (!name.startsWith(`${basename(to)}.`) || !PARTIAL.test(name)) continue;
    const { mtimeMs } = statSync(join(folder, name), { throwIfNoEntry: false }) ?? { mtimeMs: now };
    if (now - mtimeMs > ABANDONED_MS) rmSync(join(folder, name), { force: true });
  }
}
