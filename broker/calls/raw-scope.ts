/** The scope of a raw request, which names none: the one under which its endpoint stands (decisions, Raw door). */
import { effectiveGrant } from '../policy/attenuation.ts';
import type { Ask, Facts, Verdict } from '../policy/facts.ts';
import { classify } from '../policy/operation.ts';

/** `needed`: the scopes that cover the endpoint; empty where none does. */
export type InferredScope = { scope: string; needed: readonly string[] };

/**
 * The scope: of those that the most specific rule of the whole manifest names, a granted one, by name. Where none is granted, or none
 * covers the endpoint, one by which the decision says so.
 */
export function inferScope(facts: Facts, ask: Omit<Ask, 'scope'>): InferredScope {
  const granted = effectiveGrant(facts, { ...ask, scope: '' })?.scopes ?? [];
  const found = facts.platform && ask.call ? classify(facts.platform.rules, ask.call) : undefined;
  const needed = found?.kind === 'classified' ? [...found.scopes].sort() : [];
  // Any granted scope: it does not cover the endpoint either.
  const scope = needed.find((one) => granted.includes(one)) ?? needed[0] ?? granted[0] ?? '';
  return { scope, needed };
}

/** A refusal for want of a scope names all that would do. */
export function naming(verdict: Extract<Verdict, { kind: 'deny' }>, { needed }: InferredScope): typeof verdict {
  if (verdict.reason !== 'scope_not_granted' || needed.length === 0) return verdict;
  return { ...verdict, detail: `the call needs the scope ${needed.join(' or ')}, which the grant does not include` };
}
