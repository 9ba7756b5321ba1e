// Sentences for calls that several people have to approve.
/** @typedef {import('../../answers.ts').HeldCall} HeldCall */
import { visibleLine } from '../visible.js';

/**
 * Returns how many people have to approve a call, and who has; undefined for a call that one person decides.
 *
 * @param {{ approvers?: HeldCall['approvers'], approved_before?: HeldCall['approved_before'] }} held
 */
export function describeApprovers({ approvers, approved_before: before }) {
  if (!approvers) return undefined;
  const { needed, given } = approvers;
  const by =
    before && before.length > 0
      ? `: ${before.map((one) => visibleLine(one.approved_by_email ?? 'a former owner')).join(', ')}`
      : '';
  return `${needed} people have to approve; ${given === 0 ? 'nobody has yet' : `${given} ${given === 1 ? 'has' : 'have'}${by}`}.`;
}

/** After one of several people approved. */
export const approvedInPart = (/** @type {NonNullable<HeldCall['approvers']>} */ { needed, given }) =>
  `Your approval is recorded: ${given} of ${needed} people have approved. The call waits until the others approve, too.`;
