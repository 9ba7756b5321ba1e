/** What a stored manifest says to people: the built-in platform that it came from, its sets of scopes, and what is said of its calls. */
import { queryTemplate, readTemplate } from '../sentences/read-template.ts';
import { READS } from './builtin/sentences/reads.ts';
import { BUILTIN_PLATFORMS } from './builtin.ts';
import { BUILTIN_NAMES, type BuiltinName } from './builtin-names.ts';
import type { Manifest, ManifestInput } from './manifest.ts';
import { scopesLike } from './scopes-like.ts';

export type Preset = { name: string; scopes: string[] };

/**
 * The built-in platform with which a manifest has most of that one's scopes in common; undefined: none. An operator may have
 * changed all else, and an earlier version had fewer scopes.
 */
export function builtinOf({ scopes }: Pick<ManifestInput, 'scopes'>): BuiltinName | undefined {
  return BUILTIN_NAMES.find((name) => {
    const own = Object.keys(BUILTIN_PLATFORMS[name].scopes);
    return own.filter((scope) => Object.hasOwn(scopes, scope)).length * 2 > own.length;
  });
}

/**
 * The sets of scopes of a manifest, with what each contains now; those that contain nothing are left out. A manifest that was stored
 * before there were any has those of its built-in platform.
 */
export function presetsOf(manifest: Pick<ManifestInput, 'scopes' | 'presets'>): Preset[] {
  const builtin = builtinOf(manifest);
  const sets = manifest.presets ?? (builtin ? BUILTIN_PLATFORMS[builtin].presets : undefined) ?? {};
  const scopes = Object.keys(manifest.scopes);
  return Object.entries(sets)
    .map(([name, patterns]) => ({ name, scopes: [...new Set(patterns.flatMap((one) => scopesLike(one, scopes)))] }))
    .filter((preset) => preset.scopes.length > 0);
}

/**
 * A manifest with the members that its calls may differ in. One that was stored before there were any has those of its built-in platform,
 * as far as it has their operations.
 */
export function withFree(manifest: Manifest): Manifest {
  const builtin = manifest.free === undefined ? builtinOf(manifest) : undefined;
  const free: Manifest['free'] = builtin && BUILTIN_PLATFORMS[builtin].free;
  return free ? { ...manifest, free } : manifest;
}

/**
 * What a manifest says of its calls. One that was stored before there were sentences says what its built-in platform does. What reads
 * of a built-in platform do is made here, and not stored: most of it follows from their paths.
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

/** Templates for the reads of a built-in platform: those that are written down, and for the others by the shape of their paths. */
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
