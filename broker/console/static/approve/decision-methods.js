// How the viewer of a held call may decide it.
/** @typedef {import('/console/approve/held.js').Me} Me */
/** @typedef {import('/console/approve/held.js').Owner} Owner */
/** @typedef {'approve' | 'deny'} Verb */
import { withoutPasskeys } from '/console/passkeys/ceremony.js';

/**
 * `how`: how the buttons decide; undefined: deciding is not possible. `owner`: the signed-in owner who may decide. `both`: they may choose between
 * passkey and click. `without`: why no passkey can be used here.
 *
 * @typedef {{ how: 'passkey' | 'click' | undefined, owner: Owner | undefined, both: boolean, without: string | undefined }} DecisionMethods
 */

/**
 * Without a session only by passkey, of any owner; with a session by a click, or by a passkey when the owner has one.
 *
 * @param {Me | undefined} me
 * @param {boolean} byClick whether an owner with both ways has chosen the click
 * @returns {DecisionMethods}
 */
export function decisionMethodsOf(me, byClick) {
  const without = withoutPasskeys();
  const owner = me && !me.elsewhere && me.mayDecide ? me : undefined;
  // A viewer may not decide with a passkey either.
  const viewer = me && !me.elsewhere && !me.mayDecide;
  const passkey = !without && !viewer && (!owner || owner.passkeys);
  const how = passkey && !(owner && byClick) ? 'passkey' : owner ? 'click' : undefined;
  return { how, owner, both: Boolean(passkey && owner), without };
}

/**
 * Describes who decides, and how, as it will be recorded.
 *
 * @param {DecisionMethods} ways
 */
export function recordOf({ how, owner }) {
  if (how === 'click' && owner) return { who: owner.email, how: 'signed in, by a click' };
  if (how === 'passkey')
    return { who: owner?.email ?? 'the person who has the passkey', how: 'by passkey, and which one' };
  return { who: 'the person who decides', how: 'by passkey, or signed in' };
}
