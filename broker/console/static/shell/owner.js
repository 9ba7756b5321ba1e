// The signed-in owner.
/** @typedef {import('../../answers.ts').Me} Me */
import { createContext, useContext } from '/console/html.js';

export const Owner = createContext(/** @type {Me | undefined} */ (undefined));

/** Returns the owner of this session. Throws outside of the console, where pages work without a session. */
export function useOwner() {
  const owner = useContext(Owner);
  if (!owner) throw new Error('Nobody is signed in on this page.');
  return owner;
}

/** @typedef {Pick<Me, 'role'>} HasRole */

/** Whether this owner may decide held calls and requests; mayChange: whether they may change settings. */
export const mayDecide = (/** @type {HasRole} */ { role }) => role === 'approver' || role === 'admin';
export const mayChange = (/** @type {HasRole} */ { role }) => role === 'admin';
