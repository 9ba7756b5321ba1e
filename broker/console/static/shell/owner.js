// Who is signed in.
/** @typedef {import('../../answers.ts').Me} Me */
import { createContext, useContext } from '/console/html.js';

export const Owner = createContext(/** @type {Me | undefined} */ (undefined));

/** The owner whose session this is. Throws outside of the console, where nobody need be signed in. */
export function useOwner() {
  const owner = useContext(Owner);
  if (!owner) throw new Error('Nobody is signed in on this page.');
  return owner;
}

/** @typedef {Pick<Me, 'role'>} HasRole */

/** Whether this owner may decide on what waits, and whether they may change things. */
export const mayDecide = (/** @type {HasRole} */ { role }) => role === 'approver' || role === 'admin';
export const mayChange = (/** @type {HasRole} */ { role }) => role === 'admin';
