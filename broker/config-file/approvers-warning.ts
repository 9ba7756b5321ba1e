/** Warns of rules whose calls nobody can approve. */

/** Returns a warning if a rule needs more people than may decide in the organisation: its calls can only be denied, or expire. */
export function approversWarning(
  { approvers = 1 }: { approvers?: number | undefined },
  deciders: number,
): string | undefined {
  if (approvers <= Math.max(1, deciders)) return undefined;
  return `${approvers} people have to approve, and the organisation has ${deciders} who may decide: such calls can only be denied, or expire.`;
}
