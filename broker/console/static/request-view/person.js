// For whom a held call is: how somebody is known, and never who.
/** @typedef {import('../../answers.ts').ListedCall} ListedCall */
import { visibleLine } from '../visible.js';

/**
 * `for a person, verified by id.example`, `for a person, slack id as the agent says`; empty: for nobody in particular.
 *
 * @param {ListedCall['caller']} caller
 */
export function forWhom(caller) {
  if (caller === null) return '';
  const { identity, named_by: namedBy } = caller;
  if (identity === 'asserted') return `for a person, ${namedBy ? `${visibleLine(namedBy)} id ` : ''}as the agent says`;
  return `for a person, verified${namedBy ? ` by ${visibleLine(placeOf(namedBy))}` : ''}`;
}

/** An issuer without what all of them begin with. */
const placeOf = (/** @type {string} */ issuer) => issuer.replace(/^https?:\/\//, '').replace(/\/$/, '');
