/**
 * The ref constraint of a grant: which branches and tags may be written (`refs`), and how (`ref_changes`). It applies to git, and to every operation of a
 * platform that writes a ref; a call is refused unless it provably stays within the constraint.
 */
import { limitsRefs } from '../constraints.ts';
import { type CallAsk, type Constraints, type GitRef, UnreadBody } from '../facts.ts';
import { readGraphqlCall } from '../graphql/call.ts';
import { isGraphql } from '../operation.ts';
import type { PlatformRules } from '../platform-rules.ts';
import { matchesRef } from './patterns.ts';
import { type WrittenRef, writtenByRules } from './rules.ts';

/** A refusal with the refs, as far as the call names any, and the reason. `unread`: the reason is that the body was not read. */
export type RefRefusal = { violating: string[]; detail: string; unread?: true };

const MAX_NAMED = 50;
const MAX_NAMED_LENGTH = 400;
/** The limit of patterns that a refusal lists, so that the agent can choose another ref. */
const MAX_SHOWN = 5;

/** Checks that a call writes only refs that the grant allows, in the allowed ways; undefined when it does. */
export function refuseRefs(constraints: Constraints, rules: PlatformRules, call: CallAsk): RefRefusal | undefined {
  if (!limitsRefs(constraints)) return undefined;
  const { refs, ref_changes: changes } = constraints;
  const written = refsWritten(rules, call);
  const isOfUnread = (why: string) => call.body instanceof UnreadBody && why === call.body.why;
  if (typeof written === 'string')
    return { violating: [], detail: written, ...(isOfUnread(written) && { unread: true }) };
  const outside = written.filter(({ name }) => refs !== undefined && (name === undefined || !matchesRef(refs, name)));
  const forbidden = written.filter(({ action }) => changes !== undefined && !changes.includes(action));
  const [first = forbidden[0]] = outside;
  if (first === undefined) return undefined;
  const names = [...outside, ...forbidden].flatMap(({ name }) => (name === undefined ? [] : [shorten(name)]));
  const detail = outside.includes(first) ? whyOutside(first, refs) : whyForbidden(first);
  const isUnread = first.name === undefined && isOfUnread(first.why);
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

/** Returns the refs that a call writes, or why they cannot be determined. */
function refsWritten(rules: PlatformRules, call: CallAsk): readonly WrittenRef[] | string {
  if (call.git !== undefined) return call.git.refs;
  if (isGraphql(rules, call)) return 'GraphQL is refused as a whole where refs are limited';
  return writtenByRules(rules, call);
}

/**
 * Returns the refs that a call writes, as conditions read them (`request.refs`), or why they cannot be determined, without values of the call. On a platform
 * whose manifest has no ref rules, no call writes refs. A GraphQL query writes none; which refs a mutation writes cannot be determined from it.
 */
export function refsForConditions(rules: PlatformRules | undefined, call: CallAsk): readonly GitRef[] | string {
  if (call.git !== undefined) return call.git.refs;
  if (rules === undefined || rules.refs.length === 0) return [];
  if (isGraphql(rules, call))
    return isQuery(call) ? [] : 'what a GraphQL call writes is not known by the names of refs';
  const written = writtenByRules(rules, call);
  if (typeof written === 'string') return written;
  const named = written.flatMap(({ name, action }) => (name === undefined ? [] : [{ name, action }]));
  return named.length === written.length ? named : 'one that it writes is not named, or not plainly';
}

function isQuery({ query, body }: CallAsk): boolean {
  if (query !== '' || body instanceof UnreadBody) return false;
  const read = readGraphqlCall(body);
  return read.kind === 'read' && read.operation === 'query';
}

/**
 * Refuses a push with an option (`git push -o`) that the platform's manifest does not list, on a grant that limits repositories or refs; undefined when the
 * push is allowed. Code hosts act on options with the credential of the push: GitLab opens and merges merge requests, into another branch or project (GitLab
 * documentation, "Push options"), Gitea publishes a repository.
 */
export function refusePushOptions(
  constraints: Constraints,
  { pushOptions }: Pick<PlatformRules, 'pushOptions'>,
  { git }: CallAsk,
): RefRefusal | undefined {
  if (constraints.repos === undefined && !limitsRefs(constraints)) return undefined;
  const refused = git?.pushOptions?.map(nameOf).find((name) => !pushOptions.includes(name));
  if (refused === undefined) return undefined;
  const name = shorten(refused);
  return {
    violating: [`-o ${name}`],
    detail: `the push option "${name}" may do more than this grant allows; push without -o ${name}, or ask an owner to list it in git_push_options of the platform`,
  };
}

/** Returns the name of a push option: values are never shown or recorded. */
const nameOf = (option: string): string => option.split('=', 1)[0] ?? '';

/** Bounds a text: names of refs may be as long as git accepts. */
function shorten(text: string): string {
  return text.length > MAX_NAMED_LENGTH ? `${text.slice(0, MAX_NAMED_LENGTH)}…` : text;
}
