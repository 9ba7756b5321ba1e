/** What a new manifest changes, in lines for people. */
import { difference, listDifference, sameJson } from '../config-file/differences.ts';
import type { Manifest } from '../platforms/manifest.ts';

/** Lines such as `base_url: https://a.example → https://b.example`; nothing when both say the same. */
export function manifestDifference(before: Manifest, after: Manifest): string[] {
  const fields = new Set([...Object.keys(before), ...Object.keys(after)] as (keyof Manifest)[]);
  fields.delete('scopes');
  fields.delete('sentences');
  const details = [...fields].flatMap((field) =>
    sameJson(before[field] ?? null, after[field] ?? null) ? [] : difference(field, before[field], after[field]),
  );
  const scopes = new Set([...Object.keys(before.scopes), ...Object.keys(after.scopes)]);
  return [
    ...details,
    ...[...scopes].flatMap((scope) => scopeDifference(scope, before.scopes[scope], after.scopes[scope])),
    ...sentencesDifference(before.sentences, after.sentences),
  ];
}

/** So many are told one by one: a built-in platform has hundreds. */
const FEW_SENTENCES = 5;

function sentencesDifference(before: Manifest['sentences'] = {}, after: Manifest['sentences'] = {}): string[] {
  const operations = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changed = operations.filter((operation) => before[operation] !== after[operation]);
  if (changed.length > FEW_SENTENCES) return [`sentences: ${changed.length} changed`];
  return changed.flatMap((operation) => difference(`sentence ${operation}`, before[operation], after[operation]));
}

function scopeDifference(scope: string, before: readonly string[] | undefined, after: readonly string[] | undefined) {
  if (before === undefined) return [`scope ${scope}: added (${after?.join(', ')})`];
  if (after === undefined) return [`scope ${scope}: removed`];
  return listDifference(`scope ${scope}`, before, after);
}
