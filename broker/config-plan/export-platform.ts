/** Exports a stored manifest as a person would write it: as a built-in one with changes, where that is equivalent. */
import { sameJson } from '../config-file/differences.ts';
import { BUILTIN_PLATFORMS, parsePlatformEntry } from '../platforms/builtin.ts';
import { BUILTIN_NAMES } from '../platforms/builtin-names.ts';
import { type Manifest, MERGED_BY_ENTRY } from '../platforms/manifest.ts';

/** Fields that overrides change entry by entry. */
const BY_ENTRY: ReadonlySet<string> = new Set(['headers', ...MERGED_BY_ENTRY]);

/** Returns the entry for the platform's id; parsing it results in exactly this manifest. */
export function exportPlatform(manifest: Manifest): Record<string, unknown> {
  const uses = BUILTIN_NAMES.filter((use) => hasScopesOf(use, manifest));
  const forms = uses
    .flatMap((use) => entriesOf(use, manifest))
    .flatMap((entry) => {
      // Parsing is expensive for a large manifest.
      if (JSON.stringify(entry).length >= JSON.stringify(manifest).length) return [];
      const read = parsePlatformEntry(entry);
      return read.success && sameJson(read.data, manifest) ? [entry] : [];
    });
  return forms.toSorted((a, b) => JSON.stringify(a).length - JSON.stringify(b).length)[0] ?? { ...manifest };
}

/** Whether the manifest has all scopes of the built-in one: an entry cannot remove a scope of a built-in platform. */
function hasScopesOf(use: (typeof BUILTIN_NAMES)[number], { scopes }: Manifest): boolean {
  return Object.keys(BUILTIN_PLATFORMS[use].scopes).every((scope) => Object.hasOwn(scopes, scope));
}

/** Returns candidate entries, with and without `oauth`: a change of the origin removes fields of the built-in one, which then need not be listed. */
function entriesOf(use: (typeof BUILTIN_NAMES)[number], manifest: Manifest): Record<string, unknown>[] {
  const { oauth, ...changed } = changes(BUILTIN_PLATFORMS[use], manifest);
  const entry = { use, ...changed };
  return oauth === undefined ? [entry] : [entry, { ...entry, oauth }];
}

function changes(builtin: object, manifest: object): Record<string, unknown> {
  const before = builtin as Record<string, unknown>;
  const changed = Object.entries(manifest).filter(([field, value]) => !sameJson(before[field] ?? null, value));
  return Object.fromEntries(
    changed.map(([field, value]) => [
      field,
      BY_ENTRY.has(field) && before[field] ? changes(before[field] as object, value as object) : value,
    ]),
  );
}
