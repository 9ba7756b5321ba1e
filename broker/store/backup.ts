/** A backup: a copy of the store and its manifest, both whole or not there. */
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { syncFile, syncFolder } from '../runtime/sync-file.ts';
import { type BackupManifest, type CopiedState, hashFile, manifestOf, writeManifest } from './backup-manifest.ts';
import { makePrivate } from './lock.ts';

/** What was not written to for so long was left by a backup that was killed. */
const LEFT_MS = 3_600_000;

/**
 * Makes the new file `to` (0600) and its manifest. `copy` writes the store into an empty file and answers what it copied.
 * Throws on failure; then there is no file `to`.
 */
export async function writeBackup(
  to: string,
  { version, now }: { version: string; now: number },
  copy: (partial: string) => Promise<CopiedState> | CopiedState,
): Promise<BackupManifest> {
  refuseThere(to);
  removeLeft(to, now);
  // Of its own: of two backups into one file, as by the jobs of two machines, neither may take or change the copy of the other.
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
    // Another one may have been sooner.
    refuseThere(to);
    // First: where there is a backup, there is its manifest.
    renameSync(partialManifest, manifestFile);
    renameSync(partial, to);
    syncFolder(dirname(to));
    return manifest;
  } catch (error) {
    rmSync(partial, { force: true });
    rmSync(manifestOf(partial), { force: true });
    throw error;
  }
}

function refuseThere(to: string): void {
  if (existsSync(to)) throw new Error(`${to} already exists. Name a new file.`);
}

function removeLeft(to: string, now: number): void {
  const folder = dirname(to);
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    if (!name.startsWith(`${basename(to)}.`) || !/\.partial(\.manifest\.json)?$/.test(name)) continue;
    const { mtimeMs } = statSync(join(folder, name), { throwIfNoEntry: false }) ?? { mtimeMs: now };
    if (now - mtimeMs > LEFT_MS) rmSync(join(folder, name), { force: true });
  }
}
