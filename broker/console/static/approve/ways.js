// In which ways whoever looks at a held call may decide it.
/** @typedef {import('/console/approve/held.js').Me} Me */
/** @typedef {import('/console/approve/held.js').Owner} Owner */
/** @typedef {'approve' | 'deny'} Verb */
import { withoutPasskeys } from '/console/passkeys/ceremony.js';

/**
 * `how`: by which way the buttons decide; undefined: by none. `owner`: who is signed in and may decide. `both`: they may choose.
 * `without`: why no passkey can be used here.
 *
 * @typedef {{ how: 'passkey' | 'click' | undefined, owner: Owner | undefined, both: boolean, without: string | undefined }} Ways
 */

/**
 * Without a session by passkey, whosever it is; with one by a click, or by a passkey where there is one.
 *
 * @param {Me | undefined} me
 * @param {boolean} byClick whether whoever may choose has chosen the click
 * @returns {Ways}
 */
export function waysOf(me, byClick) {
  const without = withoutPasskeys();
  const owner = me && !me.elsewhere && me.mayDecide ? me : undefined;
  // A passkey of somebody who may look and no more decides nothing either.
  const viewer = me && !me.elsewhere && !me.mayDecide;
  const passkey = !without && !viewer && (!owner || owner.passkeys);
  const how = passkey && !(owner && byClick) ? 'passkey' : owner ? 'click' : undefined;
  return { how, owner, both: Boolean(passkey && owner), without };
}

/**
 * Who decides, and how, for what will be recorded.
 *
 * @param {Ways} ways
 */
export function recordOf({ how, owner }) {
  if (how === 'click' && owner) return { who: owner.email, how: 'signed in, by a click' };
  if (how === 'passkey') return { who: owner?.email ?? 'whoever has the passkey', how: 'by passkey, and which one' };
  return { who: 'whoever decides', how: 'by passkey, or signed in' };
}
