// The steps of a held call, in words.
/** @typedef {import('../../answers.ts').AuditRow} AuditRow */
/** @typedef {import('/console/activity/row-labels.js').Badge} Badge */
import { readable } from '/console/activity/event-text.js';
import { HOW, REASONS, resultOf } from '/console/activity/row-labels.js';
import { visibleLine } from '/console/visible.js';

/** One step of a held call. @typedef {NonNullable<AuditRow['history']>[number]} Step */

/**
 * Returns the outcome of a row as a badge: for any row of a held call the outcome of the call.
 *
 * @param {AuditRow} row
 * @returns {Badge}
 */
export function outcomeOf(row) {
  const last = row.history?.at(-1);
  return last ? stepBadge(last) : resultOf(row);
}

/** @param {Step} step @returns {Badge} */
export function stepBadge({ step, state, result, reason, upstream_status, failed, ended }) {
  if (step === 'held') return { kind: 'wait', words: 'Held' };
  if (step === 'corrected') return { kind: 'wait', words: 'Corrected' };
  if (step === 'approved_in_part') return { kind: 'wait', words: 'Approved in part' };
  if (step === 'approved') return { kind: 'good', words: 'Approved' };
  if (step === 'denied') return { kind: 'bad', words: 'Denied' };
  if (step === 'expired') return { kind: '', words: 'Expired' };
  const flags = { failed, ...(ended !== null && { ended }) };
  return resultOf({ kind: 'action', state: state ?? 'final', result, reason: reason ?? '', upstream_status, flags });
}

/**
 * Returns one step in words: `approved by ann@acme.example, in the console`.
 *
 * @param {Step} step
 * @param {ReadonlyMap<string, string>} names
 */
export function describeStep({ step, by, how, upstream_status, result, reason, failed, ended }, names) {
  if (step === 'held') return `held: ${REASONS[reason ?? ''] ?? 'a person decides'}`;
  if (step === 'expired') return 'expired: nobody decided in time';
  if (step === 'made') {
    if (result === 'allowed') {
      const status = upstream_status === null ? '' : `: status ${upstream_status}`;
      const broke = ended === null || ended === 'complete' ? '' : ', and its answer was cut off';
      return `made${status}${failed ? ', with an error in its body' : ''}${broke}`;
    }
    return `not made as requested: ${REASONS[reason ?? ''] ?? readable(reason ?? 'under way')}`;
  }
  const who = by === null ? 'an owner' : visibleLine(names.get(by) ?? by);
  const way = how === null ? undefined : HOW[how];
  return `${step === 'approved_in_part' ? 'approved' : step} by ${who}${way ? `, ${way}` : ''}`;
}
