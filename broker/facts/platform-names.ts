/** Names of platforms for people: “GitHub” instead of “codehost”. */
import { z } from 'zod';
import { findManifestsOf } from '../store/platforms.ts';
import type { Db } from '../store/store.ts';
import { readStored } from '../store/stored-json.ts';

/**
 * The only member read from a manifest here, without validating the rest: manifests are validated when they are stored, and one that has become invalid still
 * has a name.
 */
const Named = z.looseObject({ name: z.string().optional() });

/**
 * Returns the name of a platform by its id: the `name` of its current manifest, or the id when there is no name or no such platform. A name is an admin's
 * text and must be escaped where it is shown.
 */
export type NameOfPlatform = (platformId: string) => string;

/** Loads the names of these platforms of an organisation. */
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
