/** A backup: a copy of the store and its manifest, both whole or not there. */
import { existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { syncFile, syncFolder } from '../runtime/sync-file.ts';
import { type BackupManifest, type CopiedState, hashFile, manifestOf, writeManifest } from './backup-manifest.ts';
import { makePrivate } from './lock.ts';

/**
 * Makes the new file `to` (0600) and its manifest. `copy` writes the store into an empty file and answers what it copied.
 * Throws on failure; then there is no file `to`.
 */
export async function writeBackup(
  to: string,
  { version, now }: { version: string; now: number },
  copy: (partial: string) => Promise<CopiedState> | CopiedState,
): Promise<BackupManifest> {
  if (existsSync(to)) throw new Error(`${to} already exists. Name a new file.`);
  const partial = `${to}.partial`;
  const manifestFile = manifestOf(to);
  rmSync(partial, { force: true });
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
    writeManifest(`${manifestFile}.partial`, manifest);
    // First: where there is a backup, there is its manifest.
    renameSync(`${manifestFile}.partial`, manifestFile);
    renameSync(partial, to);
    syncFolder(dirname(to));
    return manifest;
  } catch (error) {
    rmSync(partial, { force: true });
    rmSync(`${manifestFile}.partial`, { force: true });
    throw error;
  }
}
