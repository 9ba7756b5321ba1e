/** Computes in which channels a held call may be decided by a button: only those that every hold of the call permits. Pure. */
import type { Facts, MatchedRule } from './facts.ts';
import type { Hold } from './standing-terms.ts';

const NOWHERE: readonly string[] = Object.freeze([]);

/** Returns names of channels. A grant that requires approvals permits none, and neither does a rule that holds because its condition failed. */
export function channelsToDecideIn(
  { policy, guardrails }: Pick<Facts, 'policy' | 'guardrails'>,
  holds: readonly Hold[],
  matched: readonly MatchedRule[],
): readonly string[] {
  let common: readonly string[] | undefined;
  for (const hold of holds) {
    if (hold.source === 'grant') return NOWHERE;
    const { decideIn = NOWHERE } = (hold.source === 'policy' ? policy?.rules : guardrails.rules)?.[hold.rule] ?? {};
    if (matched.some(({ source, name, error }) => source === hold.source && name === hold.name && error !== undefined))
      return NOWHERE;
    common = common?.filter((name) => decideIn.includes(name)) ?? decideIn;
  }
  return common ?? NOWHERE;
}
