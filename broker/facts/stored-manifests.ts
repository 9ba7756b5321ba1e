/** Manifests as they are stored, read by their schema. */
import type { Manifest } from '../platforms/manifest.ts';
import { ManifestFields } from '../platforms/manifest-fields.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import { listPlatforms } from '../store/platforms.ts';
import type { Db } from '../store/store.ts';
import { readStored } from '../store/stored-json.ts';

/** By their texts: the console asks for all platforms with each page that it opens, and a large manifest takes 5 ms to read. */
const read = recentlyUsed<Manifest>(64, 16 * 1024 * 1024);

/** What stands in it was checked (`manifestProblems`) when it was stored. Not to be changed. @throws Error that names the platform */
export function readManifest({ platform_id, manifest: text }: { platform_id: string; manifest: string }): Manifest {
  const known = read.get(text);
  if (known !== undefined) return known;
  const manifest = readStored(ManifestFields, text, `manifest of ${platform_id}`);
  // What was read takes about as much again as its text.
  read.set(text, manifest, 2 * text.length);
  return manifest;
}

/** The manifests in force of all platforms of an organisation, by their ids. */
export async function loadManifests(db: Db, organisationId: string): Promise<Map<string, Manifest>> {
  const platforms = await listPlatforms(db, organisationId);
  return new Map(platforms.map((one) => [one.platform_id, readManifest(one)]));
}
