// The person on whose behalf a held call is made: how they are identified, never who they are.
/** @typedef {import('../../answers.ts').ListedCall} ListedCall */
import { visibleLine } from '../visible.js';

/**
 * Returns `for a person, verified by id.example` or `for a person, slack id as the agent says`; empty when the call is for no particular person.
 *
 * @param {ListedCall['caller']} caller
 */
export function forWhom(caller) {
  if (caller === null) return '';
  const { identity, named_by: namedBy } = caller;
  if (identity === 'asserted') return `for a person, ${namedBy ? `${visibleLine(namedBy)} id ` : ''}as the agent says`;
  return `for a person, verified${namedBy ? ` by ${visibleLine(placeOf(namedBy))}` : ''}`;
}

/** Returns the issuer without the `https://` that all issuers start with. */
const placeOf = (/** @type {string} */ issuer) => issuer.replace(/^https?:\/\//, '').replace(/\/$/, '');
