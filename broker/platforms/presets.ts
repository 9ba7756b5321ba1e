/** Descriptive parts of a stored manifest: the built-in platform from which it was made, its sets of scopes, and the sentences of its calls. */
import { queryTemplate, readTemplate } from '../sentences/read-template.ts';
import { READS } from './builtin/sentences/reads.ts';
import { BUILTIN_PLATFORMS } from './builtin.ts';
import { BUILTIN_NAMES, type BuiltinName } from './builtin-names.ts';
import type { Manifest, ManifestInput } from './manifest.ts';
import { scopesLike } from './scopes-like.ts';

export type Preset = { name: string; scopes: string[] };

/**
 * Returns the built-in platform of which a manifest has more than half of the scopes; undefined when there is none. An operator may have changed everything
 * else, and an earlier version had fewer scopes.
 */
export function builtinOf({ scopes }: Pick<ManifestInput, 'scopes'>): BuiltinName | undefined {
  return BUILTIN_NAMES.find((name) => {
    const own = Object.keys(BUILTIN_PLATFORMS[name].scopes);
    return own.filter((scope) => Object.hasOwn(scopes, scope)).length * 2 > own.length;
  });
}

/**
 * Returns the sets of scopes of a manifest, with their current contents; empty sets are omitted. A manifest stored before presets existed has those of its
 * built-in platform.
 */
export function presetsOf(manifest: Pick<ManifestInput, 'scopes' | 'presets'>): Preset[] {
  const builtin = builtinOf(manifest);
  const sets = manifest.presets ?? (builtin ? BUILTIN_PLATFORMS[builtin].presets : undefined) ?? {};
  const scopes = Object.keys(manifest.scopes);
  return Object.entries(sets)
    .map(([name, patterns]) => ({ name, scopes: [...new Set(patterns.flatMap((one) => scopesLike(one, scopes)))] }))
    .filter((preset) => preset.scopes.length > 0);
}

/** Returns a manifest with the members in which its calls may differ. A manifest stored before `free` existed has that of its built-in platform. */
export function withFree(manifest: Manifest): Manifest {
  const builtin = manifest.free === undefined ? builtinOf(manifest) : undefined;
  const free: Manifest['free'] = builtin && BUILTIN_PLATFORMS[builtin].free;
  return free ? { ...manifest, free } : manifest;
}

/**
 * Returns the sentences of a manifest. A manifest stored before sentences existed has those of its built-in platform. Sentences of a built-in platform's
 * reads are generated here, and not stored: most of them follow from their paths.
 */
export function sentencesIn(
  manifest: Pick<ManifestInput, 'scopes' | 'sentences' | 'minor_units'>,
): Pick<ManifestInput, 'sentences' | 'minor_units'> {
  const builtin = builtinOf(manifest);
  if (!builtin) return manifest;
  const reads = readSentences(builtin, manifest);
  if (manifest.sentences !== undefined) return { ...manifest, sentences: { ...reads, ...manifest.sentences } };
  const { sentences, minor_units } = BUILTIN_PLATFORMS[builtin];
  return { sentences: { ...reads, ...sentences }, minor_units: { ...minor_units, ...manifest.minor_units } };
}

/** Returns templates for the reads of a built-in platform: the written ones, and generated ones for all others, from the form of their paths. */
function readSentences(builtin: BuiltinName, { scopes }: Pick<ManifestInput, 'scopes'>): Record<string, string> {
  const { words = {}, sentences: written = {} } = READS[builtin];
  const found: Record<string, string> = { ...written };
  for (const operation of new Set(Object.values(scopes).flat())) {
    const [kind = '', what = ''] = operation.split(' ');
    const template = kind === 'query' ? queryTemplate(what) : kind === 'GET' ? readTemplate(what, words) : undefined;
    if (template !== undefined) found[operation] ??= template;
  }
  return found;
}
