/** Which kinds of body an operation accepts, where they differ from those of its platform: from a manifest's `bodies`. */

import type { CallAsk } from './call-ask.ts';
import { entryFor } from './operation-index.ts';
import type { BodyKind, Operation, PlatformRules } from './platform-rules.ts';

/** Kinds whose body is an object with members. */
const OF_MEMBERS: readonly BodyKind[] = ['json', 'form', 'multipart'];

/** Returns why an operation cannot accept these kinds of body, as a sentence; undefined when it can. */
export function bodyKindsProblem(operation: Operation, kinds: readonly BodyKind[]): string | undefined {
  if (operation.kind !== 'http' || operation.method === 'GET')
    return `"${operation.source}": only a call with a body takes one; write "POST /path/*"`;
  const objects = kinds.filter((kind) => OF_MEMBERS.includes(kind));
  return objects.length > 1
    ? `"${operation.source}": an object can be written in one way only, not as ${objects.join(' and ')}`
    : undefined;
}

/** Returns the kinds of body that a call accepts; undefined when no entry matches it, so that the platform's default applies. */
export const bodyKinds = (
  { bodies }: Pick<PlatformRules, 'bodies'>,
  call: Pick<CallAsk, 'method' | 'path'>,
): readonly BodyKind[] | undefined => entryFor(bodies, call)?.kinds;

/**
 * Returns the kinds of body that a client may send unmodified: the platform might interpret any other kind as content that was not checked (RFC 9110 section
 * 8.3).
 */
export const rawBodyKinds = (
  rules: Pick<PlatformRules, 'bodies' | 'rawBodies'>,
  call: { method: string; path: string },
): readonly BodyKind[] => bodyKinds(rules, call as Pick<CallAsk, 'method' | 'path'>) ?? rules.rawBodies;

/**
 * Whether an operation stores a body as it is, whatever its type: a PUT that accepts bytes. Only PUT: no server overrides the method of a PUT (Rack, Symfony,
 * Laravel and ASP.NET look for a method override in a POST).
 */
export const isStored = (rules: Pick<PlatformRules, 'bodies'>, call: { method: string; path: string }): boolean =>
  call.method === 'PUT' && bodyKinds(rules, { method: call.method, path: call.path })?.includes('bytes') === true;
