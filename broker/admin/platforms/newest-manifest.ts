/** Built-in platforms after an upgrade: computes their manifests by the definitions of this release. */
import { isDeepStrictEqual } from 'node:util';
import { sameJson } from '../../config-file/differences.ts';
import { BUILTIN_PLATFORMS, parseEntryFields } from '../../platforms/builtin.ts';
import { BUILTIN_NAMES } from '../../platforms/builtin-names.ts';
import { type Manifest, MERGED_BY_ENTRY } from '../../platforms/manifest.ts';
import { builtinOf } from '../../platforms/presets.ts';
import { storedEntry } from './platform-entry.ts';
import type { ReadPlatform } from './platforms.ts';

type Entry = Readonly<Record<string, unknown>>;

/** Fields that depend on the installation, and are never part of a release. */
const OF_THE_PLACE: ReadonlySet<string> = new Set([
  'name',
  'base_url',
  'auth',
  'git_base_url',
  'base_urls',
  'per_person',
]);

/**
 * Returns the entry, as under `platforms` of a governance file, from which this release builds the manifest of a platform; undefined when it is not a
 * built-in one. For a platform without a stored entry, created by an earlier release, the entry is inferred.
 */
export function newestEntry(platform: Pick<ReadPlatform, 'platform_id' | 'manifest' | 'entry'>): Entry | undefined {
  const { manifest } = platform;
  const entry = storedEntry(platform);
  if (entry !== null) return BUILTIN_NAMES.some((name) => name === entry.use) ? entry : undefined;
  const use = builtinOf(manifest);
  return use && { use, ...differentHere(manifest, BUILTIN_PLATFORMS[use]) };
}

/**
 * Infers the local changes in a manifest of which only the result is known: the fields that depend on the installation, fields that no release sets,
 * and in fields that are merged by entry the entries that the release does not have, and emptied ones.
 */
function differentHere(manifest: Manifest, builtin: object): Entry {
  const newest = builtin as Record<string, unknown>;
  const merged: ReadonlySet<string> = new Set(['headers', 'default_headers', ...MERGED_BY_ENTRY]);
  const kept = Object.entries(manifest).flatMap(([field, value]): [string, unknown][] => {
    if (field === 'kind' || sameJson(newest[field] ?? null, value)) return [];
    const ofPlace = OF_THE_PLACE.has(field) || (field === 'oauth' && manifest.base_url !== newest.base_url);
    if (ofPlace || newest[field] === undefined) return [[field, value]];
    if (!merged.has(field)) return [];
    const known = newest[field] as Record<string, unknown>;
    const own = Object.entries(value as Record<string, unknown>).filter(
      ([name, one]) => !Object.hasOwn(known, name) || (Array.isArray(one) && one.length === 0),
    );
    return own.length === 0 ? [] : [[field, Object.fromEntries(own)]];
  });
  return Object.fromEntries(kept);
}

/** Caches the last result by manifest object, of which there is one per text (`readManifest`): computing it takes 10 ms for a large one. */
const found = new WeakMap<Manifest, { entry: string | null; newer: boolean }>();

/** Whether this release would give a platform another manifest, or cannot build one from its entry any more. */
export function hasNewerManifest(platform: Pick<ReadPlatform, 'platform_id' | 'manifest' | 'entry'>): boolean {
  const known = found.get(platform.manifest);
  if (known?.entry === platform.entry) return known.newer;
  const newer = isBehind(platform);
  found.set(platform.manifest, { entry: platform.entry, newer });
  return newer;
}

function isBehind(platform: Pick<ReadPlatform, 'platform_id' | 'manifest' | 'entry'>): boolean {
  const entry = newestEntry(platform);
  if (entry === undefined) return false;
  const read = parseEntryFields(entry);
  return !read.success || !isDeepStrictEqual(read.data, platform.manifest);
}
