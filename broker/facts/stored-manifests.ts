/** Manifests as they are stored, read by their schema. */
import type { Manifest } from '../platforms/manifest.ts';
import { ManifestFields } from '../platforms/manifest-fields.ts';
import { listPlatforms } from '../store/platforms.ts';
import type { Db } from '../store/store.ts';
import { readStored } from '../store/stored-json.ts';

/** What stands in it was checked (`manifestProblems`) when it was stored. @throws Error that names the platform */
export const readManifest = ({ platform_id, manifest }: { platform_id: string; manifest: string }): Manifest =>
  readStored(ManifestFields, manifest, `manifest of ${platform_id}`);

/** The manifests in force of all platforms of an organisation, by their ids. */
export async function loadManifests(db: Db, organisationId: string): Promise<Map<string, Manifest>> {
  const platforms = await listPlatforms(db, organisationId);
  return new Map(platforms.map((one) => [one.platform_id, readManifest(one)]));
}
