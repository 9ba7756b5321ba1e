/** Reads the rules that matched a call from its audit row, and adds descriptions of those without a name. */
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

/** The part of an audit row's decision that is read here. */
const Decided = z.object({
  policy: z.object({ id: z.string(), name: z.string(), version: z.int() }).nullish(),
  matched: z.array(Matched).optional(),
});

/** `says`: the description of a rule without a name: `POST, PUT, PATCH wait`. */
export type DescribedMatch = z.infer<typeof Matched> & { says?: string };

/**
 * Returns the matched rules of an audit row. `decision`: the column of the row, JSON text or null. The policy version that the row names is loaded; it never
 * changes.
 */
export async function describeMatched(
  compiled: Pick<Compiled, 'policy'>,
  organisationId: string,
  decision: string | null,
): Promise<DescribedMatch[]> {
  if (decision === null) return [];
  const { policy, matched = [] } = readStored(Decided, decision, 'decision');
  // Guardrails always have a name of their own.
  const unnamed = matched.some(({ source, name }) => source === 'policy' && /^rule [0-9]+$/.test(name));
  if (!unnamed || policy == null) return matched;
  const { rules } = await compiled.policy(organisationId, policy.id, policy.name, policy.version);
  return matched.map((one) => {
    // Another rule may have been given this default name.
    const [rule, another] = one.source === 'policy' ? rules.filter(({ name }) => name === one.name) : [];
    return rule?.says === undefined || another ? one : { ...one, says: rule.says };
  });
}
