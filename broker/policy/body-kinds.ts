/** Which bodies an operation takes, where it takes others than its platform does: from a manifest's `bodies`. */

import type { CallAsk } from './call-ask.ts';
import { entryFor } from './operation-index.ts';
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

/** The kinds that a call takes; undefined: no entry names it, and it takes what its platform takes. */
export const bodyKinds = (
  { bodies }: Pick<PlatformRules, 'bodies'>,
  call: Pick<CallAsk, 'method' | 'path'>,
): readonly BodyKind[] | undefined => entryFor(bodies, call)?.kinds;

/** The kinds that a client may send as they are: others may be read by the platform as something that nobody judged (RFC 9110 section 8.3). */
export const rawBodyKinds = (
  rules: Pick<PlatformRules, 'bodies' | 'rawBodies'>,
  call: { method: string; path: string },
): readonly BodyKind[] => bodyKinds(rules, call as Pick<CallAsk, 'method' | 'path'>) ?? rules.rawBodies;

/**
 * Whether an operation keeps a body as it comes, whatever its type: it takes bytes. By a PUT, of which no server takes another method than
 * its own (Rack, Symfony, Laravel and ASP.NET look for one in a POST).
 */
export const isStored = (rules: Pick<PlatformRules, 'bodies'>, call: { method: string; path: string }): boolean =>
  call.method === 'PUT' && bodyKinds(rules, { method: call.method, path: call.path })?.includes('bytes') === true;
