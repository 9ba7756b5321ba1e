// What each role may do.
/** @typedef {import('../../answers.ts').Me['role']} Role */

/** @type {Record<Role, string>} */
export const ROLE_RIGHTS = {
  viewer: 'reads everything, and changes nothing',
  approver: 'also decides on what waits',
  admin: 'also changes things: agents, connections, policies, people',
};

/** @type {readonly Role[]} */
export const ROLES = ['viewer', 'approver', 'admin'];
