/** What a backup says about itself, in a file of its own beside it. */
import { createHash } from 'node:crypto';
import { createReadStream, readFileSync, writeFileSync } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { syncFile } from '../runtime/sync-file.ts';

export const BackupManifest = z.strictObject({
  format: z.literal(1),
  store: z.enum(['sqlite', 'postgres']),
  /** When the copied state was the state of the store. */
  made_at: z.iso.datetime(),
  /** The release that made the backup. */
  version: z.string(),
  /** Of the store, in their order. */
  migrations: z.array(z.string()),
  /** Of the master key that opens what is sealed in it; null: nothing is sealed yet. */
  master_key_check_value: z.string().nullable(),
  /** Which store it is of, and how far that was (store/generation.ts). */
  store_id: z.string().nullable(),
  generation: z.number().int().nonnegative(),
  /** How many rows each table has. */
  rows: z.record(z.string(), z.number().int().nonnegative()),
  bytes: z.number().int().positive(),
  /** Of the file, in hexadecimal. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});
export type BackupManifest = z.output<typeof BackupManifest>;

/** What is read from the copied state itself. */
export type CopiedState = Pick<
  BackupManifest,
  'store' | 'migrations' | 'master_key_check_value' | 'store_id' | 'generation' | 'rows'
>;

export const manifestOf = (file: string): string => `${file}.manifest.json`;

/** Writes it, synchronised. */
export function writeManifest(path: string, manifest: BackupManifest): void {
  writeFileSync(path, `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600 });
  syncFile(path);
}

/** Reads the manifest of a backup. Throws, in words, when there is none or it is not one. */
export function readManifest(file: string): BackupManifest {
  const path = manifestOf(file);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`The manifest ${path} cannot be read. It is made with the backup and belongs beside it.`, {
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
