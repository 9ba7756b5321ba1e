/** Parses stored manifests. */
import type { Manifest } from '../platforms/manifest.ts';
import { ManifestFields } from '../platforms/manifest-fields.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import { listPlatforms } from '../store/platforms.ts';
import type { Db } from '../store/store.ts';
import { readStored } from '../store/stored-json.ts';

/** Cached by text: the console loads all platforms with each page, and parsing a large manifest takes 5 ms. */
const read = recentlyUsed<Manifest>(64, 16 * 1024 * 1024);

/**
 * Returns a stored manifest, shared: callers must not modify it. Only its fields are parsed; `manifestProblems` was checked when it was stored. @throws Error
 * that names the platform
 */
export function readManifest({ platform_id, manifest: text }: { platform_id: string; manifest: string }): Manifest {
  const known = read.get(text);
  if (known !== undefined) return known;
  const manifest = readStored(ManifestFields, text, `manifest of ${platform_id}`);
  // The parsed value takes about as much memory again as the text.
  read.set(text, manifest, 2 * text.length);
  return manifest;
}

/** Loads the current manifests of all platforms of an organisation, by their ids. */
export async function loadManifests(db: Db, organisationId: string): Promise<Map<string, Manifest>> {
  const platforms = await listPlatforms(db, organisationId);
  return new Map(platforms.map((one) => [one.platform_id, readManifest(one)]));
}
