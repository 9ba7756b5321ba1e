/** The manifest of a backup, in a file of its own beside it. */
import { createHash } from 'node:crypto';
import { createReadStream, readFileSync, writeFileSync } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { syncFile } from '../runtime/sync-file.ts';

export const BackupManifest = z.strictObject({
  format: z.literal(1),
  store: z.enum(['sqlite', 'postgres']),
  /** Time of the state that was copied. */
  made_at: z.iso.datetime(),
  /** The release that made the backup. */
  version: z.string(),
  /** Names of the applied migrations, in order. */
  migrations: z.array(z.string()),
  /** Check value of the master key that decrypts the sealed values; null: nothing is sealed yet. */
  master_key_check_value: z.string().nullable(),
  /** The store's id and generation (store/generation.ts). */
  store_id: z.string().nullable(),
  generation: z.number().int().nonnegative(),
  /** Number of rows by table. */
  rows: z.record(z.string(), z.number().int().nonnegative()),
  bytes: z.number().int().positive(),
  /** SHA-256 of the file, in hexadecimal. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});
export type BackupManifest = z.output<typeof BackupManifest>;

/** The part of the manifest that is read from the copied state itself. */
export type CopiedState = Pick<
  BackupManifest,
  'store' | 'migrations' | 'master_key_check_value' | 'store_id' | 'generation' | 'rows'
>;

export const manifestOf = (file: string): string => `${file}.manifest.json`;

/** Writes the manifest and syncs it to disk. */
export function writeManifest(path: string, manifest: BackupManifest): void {
  writeFileSync(path, `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600 });
  syncFile(path);
}

/** Reads the manifest of a backup. Throws a readable error when it is missing or invalid. */
export function readManifest(file: string): BackupManifest {
  const path = manifestOf(file);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`The manifest ${path} cannot be read. It is created with the backup, in the same folder.`, {
      cause: error,
    });
  }
  try {
    return BackupManifest.parse(JSON.parse(text));
  } catch (error) {
    throw new Error(`${path} is not the manifest of a backup that this version can read.`, { cause: error });
  }
}

/** SHA-256 of a file, in hexadecimal. */
export async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: 1024 * 1024 }), hash);
  return hash.digest('hex');
}
