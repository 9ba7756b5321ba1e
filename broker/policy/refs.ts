/**
 * The ref constraint of a grant: which branches and tags may be written (`refs`), and how (`ref_changes`). It binds git, and
 * every operation of a platform that writes a ref; what cannot be shown to stay within it is refused.
 */
import { type CallAsk, type Constraints, REF_CHANGES, UnreadBody } from './facts.ts';
import { isGraphql } from './operation.ts';
import type { PlatformRules } from './platform-rules.ts';
import { matchesRef } from './ref-patterns.ts';
import { type WrittenRef, writtenByRules } from './ref-rules.ts';

/** A refusal names the refs, as far as the call names any, and says why. `unread`: that the body was not read. */
export type RefRefusal = { violating: string[]; detail: string; unread?: true };

const MAX_NAMED = 50;
const MAX_NAMED_LENGTH = 400;
/** Of the patterns that a refusal names: who is refused can choose another ref. */
const MAX_SHOWN = 5;

/** Whether a call writes only refs that the grant allows, in the ways that it allows; undefined when it does. */
export function refuseRefs(constraints: Constraints, rules: PlatformRules, call: CallAsk): RefRefusal | undefined {
  const { refs, ref_changes: changes } = constraints;
  const limitsChanges = changes !== undefined && !REF_CHANGES.every((one) => changes.includes(one));
  if (refs === undefined && !limitsChanges) return undefined;
  const written = refsWritten(rules, call);
  if (typeof written === 'string') return { violating: [], detail: written };
  const outside = written.filter(({ name }) => refs !== undefined && (name === undefined || !matchesRef(refs, name)));
  const forbidden = written.filter(({ action }) => changes !== undefined && !changes.includes(action));
  const [first = forbidden[0]] = outside;
  if (first === undefined) return undefined;
  const names = [...outside, ...forbidden].flatMap(({ name }) => (name === undefined ? [] : [shorten(name)]));
  const detail = outside.includes(first) ? whyOutside(first, refs) : whyForbidden(first);
  const isUnread = first.name === undefined && call.body instanceof UnreadBody && first.why === call.body.why;
  return { violating: [...new Set(names)].slice(0, MAX_NAMED), detail, ...(isUnread && { unread: true }) };
}

function whyOutside(ref: WrittenRef, allowed: readonly string[] = []): string {
  if (ref.name === undefined) return shorten(ref.why);
  const [more, shown] = [allowed.length - MAX_SHOWN, allowed.slice(0, MAX_SHOWN).join(', ') || 'none'];
  const list = more > 0 ? `${shown} and ${more} more` : shown;
  return `${shorten(ref.name)} is not among the refs that the grant allows (${list})`;
}

function whyForbidden({ action, name }: WrittenRef): string {
  return `the grant does not allow to ${action} refs${name === undefined ? '' : `: ${shorten(name)}`}`;
}

/** The refs that a call writes, or why that cannot be told. */
function refsWritten(rules: PlatformRules, call: CallAsk): readonly WrittenRef[] | string {
  if (call.git !== undefined) return call.git.refs;
  if (isGraphql(rules, call)) return 'GraphQL is refused as a whole where refs are limited';
  return writtenByRules(rules.refs, call);
}

/** Names of refs are as long as git takes them. */
function shorten(text: string): string {
  return text.length > MAX_NAMED_LENGTH ? `${text.slice(0, MAX_NAMED_LENGTH)}…` : text;
}
