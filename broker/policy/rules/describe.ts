/** Describes rules without a name in words. */
import type { RuleSource } from '../facts.ts';
import { describeLimit } from '../limit.ts';
import type { MaskSource } from '../masks/mask.ts';
import type { AfterSource } from './rule.ts';

const EFFECTS: Readonly<Record<RuleSource['effect'], { one: string; many: string }>> = {
  allow: { one: 'passes', many: 'pass' },
  require_approval: { one: 'waits', many: 'wait' },
  deny: { one: 'is denied', many: 'are denied' },
  suspend: { one: 'is denied and suspends the agent', many: 'are denied and suspend the agent' },
  mask: { one: 'is answered', many: 'are answered' },
};

/** How a list of patterns is written: shortened, or complete where a reader compares two rules. */
type ListWords = (patterns: readonly string[]) => string;

const MAX_NAMED = 4;
const MAX_CONDITION_LENGTH = 100;

/** Formats, for example: `POST, PUT, PATCH wait`, `GET /secrets/** on codehost is denied`, `every call waits if request.body.amount > 100`. */
export function describeRule(rule: RuleSource): string {
  const { effect, methods, endpoints, scopes, platforms, when, mask, limit, after, approvers = 1 } = rule;
  const verb = EFFECTS[effect];
  const what = [methods?.join(', '), endpoints === undefined ? undefined : named(endpoints)].filter(Boolean).join(' ');
  const where = [
    ...(scopes === undefined ? [] : [`with ${named(scopes)}`]),
    ...(platforms === undefined ? [] : [`on ${named(platforms)}`]),
  ];
  const isOne = what === '' || (methods?.length ?? 1) + (endpoints?.length ?? 1) === 2;
  const condition = when === undefined ? [] : [`if ${cut(when.replace(/\s+/g, ' ').trim())}`];
  const beyond = limit === undefined ? [] : [`beyond ${cut(describeLimit(limit))}`];
  const earlier = after === undefined ? [] : [cut(describeAfter(after))];
  const people = approvers === 1 ? [] : [`for ${approvers} people`];
  const masked = mask === undefined ? [] : [`without ${describeMask(mask)}`];
  const said = [what === '' ? 'every call' : what, ...where, isOne ? verb.one : verb.many];
  return [...said, ...people, ...masked, ...beyond, ...earlier, ...condition].join(' ');
}

/** Formats, for example: `email, phone and values of the kinds card, iban`. */
export function describeMask({ members = [], values = [] }: MaskSource, list: ListWords = named): string {
  const kinds = values.length === 0 ? [] : [`values of the kinds ${values.join(', ')}`];
  return [...(members.length === 0 ? [] : [list(members)]), ...kinds].join(' and ');
}

/** Formats, for example: `for 8h after GET /issues/** with codehost:issues.read if request.query.state == "open"`. */
export function describeAfter(after: AfterSource, list: ListWords = named): string {
  const { within, methods, endpoints, scopes, platforms, when } = after;
  const what = [methods?.join(', '), endpoints && list(endpoints)].filter(Boolean).join(' ');
  const where = [
    ...(scopes === undefined ? [] : [`with ${list(scopes)}`]),
    ...(platforms === undefined ? [] : [`on ${list(platforms)}`]),
    ...(when === undefined ? [] : [`if ${when.replace(/\s+/g, ' ').trim()}`]),
  ];
  return [`for ${within} after`, what === '' ? 'a call' : what, ...where].join(' ');
}

const cut = (text: string): string =>
  text.length > MAX_CONDITION_LENGTH ? `${text.slice(0, MAX_CONDITION_LENGTH)}…` : text;

/** An empty list matches nothing. */
function named(patterns: readonly string[]): string {
  if (patterns.length === 0) return 'nothing';
  const more = patterns.length - MAX_NAMED;
  return more > 0 ? `${patterns.slice(0, MAX_NAMED).join(', ')} and ${more} more` : patterns.join(', ');
}
