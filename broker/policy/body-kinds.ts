/** Which bodies an operation takes, where it takes others than its platform does: from a manifest's `bodies`. */
import type { CallAsk } from './call-ask.ts';
import type { BodyKind, Operation, PlatformRules } from './platform-rules.ts';

/** Each is an object. */
const OF_MEMBERS: readonly BodyKind[] = ['json', 'form', 'multipart'];

/** What keeps these kinds from an operation, as a sentence; undefined: nothing. */
export function bodyKindsProblem(operation: Operation, kinds: readonly BodyKind[]): string | undefined {
  if (operation.kind !== 'http' || operation.method === 'GET')
    return `"${operation.source}": only a call with a body takes one; write "POST /path/*"`;
  const objects = kinds.filter((kind) => OF_MEMBERS.includes(kind));
  return objects.length > 1
    ? `"${operation.source}": an object can be written in one way only, not as ${objects.join(' and ')}`
    : undefined;
}

/**
 * The kinds that the most specific entry for a call names; undefined: no entry does, and the call takes what its platform takes. Byte
 * for byte: another spelling gets no more.
 */
export function bodyKinds(
  { bodies }: Pick<PlatformRules, 'bodies'>,
  call: Pick<CallAsk, 'method' | 'path'>,
): readonly BodyKind[] | undefined {
  let found: { kinds: readonly BodyKind[]; specificity: number } | undefined;
  for (const { operation, kinds } of bodies) {
    if (operation.kind !== 'http' || operation.method !== call.method || !operation.path.matches(call.path)) continue;
    const { specificity } = operation.path;
    if (found === undefined || specificity > found.specificity) found = { kinds, specificity };
  }
  return found?.kinds;
}
