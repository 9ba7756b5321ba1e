// Who is signed in.
import { createContext, useContext } from '/console/html.js';

export const Owner = createContext(undefined);

/** The owner: `{ id, email, role, organisation: { id, name }, … }`. */
export const useOwner = () => useContext(Owner);

/** Whether this owner may decide on what waits, and whether they may change things. */
export const mayDecide = ({ role }) => role === 'approver' || role === 'admin';
export const mayChange = ({ role }) => role === 'admin';
