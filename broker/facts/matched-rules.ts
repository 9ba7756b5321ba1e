/** The rules that matched a call, from its audit row, with what those say that have no name. */
import { z } from 'zod';
import { readStored } from '../store/stored-json.ts';
import type { Compiled } from './compiled.ts';

const Matched = z.looseObject({
  source: z.enum(['policy', 'guardrail']),
  name: z.string(),
  effect: z.string(),
  error: z.string().optional(),
  after: z.string().optional(),
});

/** What is read of the decision of an audit row. */
const Decided = z.object({
  policy: z.object({ id: z.string(), name: z.string(), version: z.int() }).nullish(),
  matched: z.array(Matched).optional(),
});

/** `says`: of a rule that has no name, its words: `POST, PUT, PATCH wait`. */
export type MatchedInWords = z.infer<typeof Matched> & { says?: string };

/**
 * `decision`: the column of the row, JSON text or null. The version of the policy that the row names is looked up: it never changes.
 */
export async function matchedInWords(
  compiled: Pick<Compiled, 'policy'>,
  organisationId: string,
  decision: string | null,
): Promise<MatchedInWords[]> {
  if (decision === null) return [];
  const { policy, matched = [] } = readStored(Decided, decision, 'decision');
  // A guardrail always has a name of its own.
  const unnamed = matched.some(({ source, name }) => source === 'policy' && /^rule [0-9]+$/.test(name));
  if (!unnamed || policy == null) return matched;
  const { rules } = await compiled.policy(organisationId, policy.id, policy.name, policy.version);
  return matched.map((one) => {
    // Another rule may have been given this name.
    const [rule, another] = one.source === 'policy' ? rules.filter(({ name }) => name === one.name) : [];
    return rule?.says === undefined || another ? one : { ...one, says: rule.says };
  });
}
