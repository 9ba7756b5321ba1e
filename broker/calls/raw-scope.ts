/** Infers the scope of a raw request, which names none, from its endpoint (docs/decisions/21-raw-requests.md). */
import { effectiveGrant } from '../policy/attenuation.ts';
import type { Ask, Facts, Verdict } from '../policy/facts.ts';
import { classify } from '../policy/operation.ts';

/** `needed`: the scopes that cover the endpoint; empty when none does. */
export type InferredScope = { scope: string; needed: readonly string[] };

/**
 * Infers the scope: the first granted one, by name, of those that the manifest's most specific rule names. When none is granted, or none
 * covers the endpoint, or a further scope is not granted, a scope for which the decision gives that reason.
 */
export function inferScope(facts: Facts, ask: Omit<Ask, 'scope'>): InferredScope {
  const granted = effectiveGrant(facts, { ...ask, scope: '' })?.scopes ?? [];
  const found = facts.platform && ask.call ? classify(facts.platform.rules, ask.call) : undefined;
  // A call may need several scopes because of its content: one that is lacking is the one to request.
  const lists = found?.kind === 'classified' ? [...(found.required ?? []), found.scopes] : [];
  const lacking = lists.find((list) => !list.some((one) => granted.includes(one)));
  const needed = [...(lacking ?? lists.at(-1) ?? [])].sort();
  // When no scope covers the endpoint, any granted scope leads to that refusal.
  const scope = needed.find((one) => granted.includes(one)) ?? needed[0] ?? granted[0] ?? '';
  return { scope, needed };
}

/** Makes a `scope_not_granted` refusal name all scopes that would do. */
export function naming(verdict: Extract<Verdict, { kind: 'deny' }>, { needed }: InferredScope): typeof verdict {
  if (verdict.reason !== 'scope_not_granted' || needed.length === 0) return verdict;
  return { ...verdict, detail: `the call needs the scope ${needed.join(' or ')}, which the grant does not include` };
}
