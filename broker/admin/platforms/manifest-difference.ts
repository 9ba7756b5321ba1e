/** Describes what a new manifest changes, in lines for people. */
import { difference, listDifference, sameJson } from '../../config-file/differences.ts';
import type { Manifest } from '../../platforms/manifest.ts';

/**
 * Returns warnings about stored credentials when the address or the auth of a platform changes; empty when neither does.
 *
 * @param stored how many connections have a credential, and how many people gave tokens of their own
 */
export function credentialWarnings(
  before: Manifest,
  after: Manifest,
  stored: { connections: number; people: number },
): string[] {
  const theirs = whose(stored);
  if (theirs === undefined) return [];
  const [from, to] = [URL.parse(before.base_url)?.origin, URL.parse(after.base_url)?.origin];
  const [are, stay] = theirs.isOne ? ['is', 'stays'] : ['are', 'stay'];
  return [
    ...(from === to ? [] : [`${theirs.words} ${are} sent to ${to} from the next call on.`]),
    ...(sameJson(before.auth, after.auth)
      ? []
      : [`${theirs.words} ${stay} and may not fit another auth: test, and replace or connect again.`]),
  ];
}

function whose({ connections, people }: { connections: number; people: number }) {
  const ofConnections = connections === 1 ? 'of its connection' : `of its ${connections} connections`;
  const ofPeople = people === 1 ? 'of one person' : `of ${people} people`;
  const parts = [...(connections > 0 ? [ofConnections] : []), ...(people > 0 ? [ofPeople] : [])];
  const isOne = connections + people === 1;
  return parts.length === 0 ? undefined : { words: `The credential${isOne ? '' : 's'} ${parts.join(' and ')}`, isOne };
}

/** Returns lines such as `base_url: https://a.example → https://b.example`; empty when the manifests are equal. */
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

/** Up to this number changes are listed one by one: a built-in platform has hundreds of sentences. */
const MAX_LISTED_SENTENCES = 5;

function sentencesDifference(before: Manifest['sentences'] = {}, after: Manifest['sentences'] = {}): string[] {
  const operations = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changed = operations.filter((operation) => before[operation] !== after[operation]);
  if (changed.length > MAX_LISTED_SENTENCES) return [`sentences: ${changed.length} changed`];
  return changed.flatMap((operation) => difference(`sentence ${operation}`, before[operation], after[operation]));
}

function scopeDifference(scope: string, before: readonly string[] | undefined, after: readonly string[] | undefined) {
  if (before === undefined) return [`scope ${scope}: added (${after?.join(', ')})`];
  if (after === undefined) return [`scope ${scope}: removed`];
  return listDifference(`scope ${scope}`, before, after);
}
