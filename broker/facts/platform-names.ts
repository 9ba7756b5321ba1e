/** Names of platforms for people, who read “GitHub” sooner than “codehost”. */
import { z } from 'zod';
import { findManifestsOf } from '../store/platforms.ts';
import type { Db } from '../store/store.ts';
import { readStored } from '../store/stored-json.ts';

/** All that is read of a manifest here: it was checked when it was stored, and one that no longer is right still has a name. */
const Named = z.looseObject({ name: z.string().optional() });

/**
 * What a platform is called, by its id: the `name` of its manifest in force, else the id itself, as where the platform is gone. A name
 * is an admin's text: whoever shows it escapes it.
 */
export type NameOfPlatform = (platformId: string) => string;

/** The names of these platforms of an organisation. */
export async function platformNames(
  db: Db,
  organisationId: string,
  platformIds: Iterable<string | null>,
): Promise<NameOfPlatform> {
  const ids = [...new Set(platformIds)].filter((id) => id !== null);
  const found = ids.length === 0 ? [] : await findManifestsOf(db, organisationId, ids);
  const names = new Map(
    found.map(({ platform_id: id, manifest }) => [id, readStored(Named, manifest, `manifest of ${id}`).name ?? id]),
  );
  return (id) => names.get(id) ?? id;
}
