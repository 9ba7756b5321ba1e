/** The checks of a concrete call: its endpoint, its recipients, the repositories that it reaches, the refs that it writes. */

import { present } from '../runtime/present.ts';
import { type CallAsk, type CONCRETE_CHECKS, METHODS } from './facts.ts';
import { type Check, deny, type Finding, type Matter, PASS } from './finding.ts';
import { classify } from './operation.ts';
import type { PlatformRules } from './platform-rules.ts';
import { refuseRecipients } from './recipients.ts';
import { refusePushOptions, refuseRefs } from './refs.ts';
import { refuseRepositories } from './repos.ts';

/** In the order of CONCRETE_CHECKS. Run only for a concrete call, and after the standing checks have found a grant. */
export const concreteChecks: readonly Check<(typeof CONCRETE_CHECKS)[number]>[] = [
  ['endpoint', checkEndpoint],
  ['recipient_constraints', checkRecipients],
  ['reach', checkReach],
];

/** Denies a GraphQL call that cannot be parsed, too; a caller that must answer 400 instead classifies the call beforehand. */
function checkEndpoint({ facts: { platform }, question: { ask } }: Matter): Finding {
  const { rules } = present(platform, 'platform');
  const call = present(ask.call, 'call');
  const found = classify(rules, call);
  if (found.kind === 'malformed') return deny('endpoint_scope_mismatch', found.error);
  if (found.kind === 'unclassified') {
    const why = found.why ?? `no scope of platform ${ask.platformId} covers ${name(call)}`;
    return deny('endpoint_scope_mismatch', `${why}${otherMethods(rules, call)}`, unread(found));
  }
  if (found.scopes.includes(ask.scope)) return PASS;
  const other = found.scopes.length > 0 ? `; it needs ${found.scopes.join(' or ')}` : '';
  return deny('endpoint_scope_mismatch', `the scope does not cover ${name(call)}${other}`);
}

function checkRecipients({ facts: { platform }, grant, question: { ask } }: Matter): Finding {
  const allowed = present(grant, 'grant').constraints.recipients;
  if (allowed === undefined) return PASS;
  const refused = refuseRecipients(allowed, present(platform, 'platform').rules, present(ask.call, 'call'));
  return refused === undefined ? PASS : refusedAs('recipient_not_allowed', refused);
}

/** A refused ref has the reason of a refused repository: the specification's list of reasons is closed. */
function checkReach({ facts: { platform }, grant, question: { ask } }: Matter): Finding {
  const { constraints } = present(grant, 'grant');
  const call = present(ask.call, 'call');
  const { rules } = present(platform, 'platform');
  const refused =
    (constraints.repos && refuseRepositories(constraints, call, rules)) ??
    refuseRefs(constraints, rules, call) ??
    refusePushOptions(constraints, rules, call);
  return refused === undefined ? PASS : refusedAs('repo_not_allowed', refused);
}

type Refused = { violating: string[]; detail: string; unread?: true };

const refusedAs = (reason: 'recipient_not_allowed' | 'repo_not_allowed', refused: Refused): Finding =>
  deny(reason, refused.detail, { violating: refused.violating, ...unread(refused) });

const unread = (found: { unread?: true }): { unread?: true } => (found.unread ? { unread: true } : {});

/** Names the methods under which the path is covered: a wrong method is easily mistaken for a missing scope. */
function otherMethods(rules: PlatformRules, call: CallAsk): string {
  const covered = METHODS.flatMap((method) => {
    const found = method === call.method ? undefined : classify(rules, { ...call, method });
    return found?.kind === 'classified' ? [`${method} ${call.path} is in ${found.scopes.join(' or ')}`] : [];
  });
  return covered.length === 0 ? '' : `; ${covered.join(', ')}`;
}

function name({ method, path }: CallAsk): string {
  return `${method} ${path}`;
}
