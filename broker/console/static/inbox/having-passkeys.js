/** @typedef {import('../../answers.ts').Me} Me */
import { ask } from '/console/api.js';
import { useEffect, useState } from '/console/html.js';
import { withoutPasskeys } from '/console/passkeys/ceremony.js';
import { mayDecide } from '/console/shell/owner.js';

/**
 * Returns whether this owner can decide by passkey here.
 *
 * @param {Me} owner
 */
export function useHavingPasskeys(owner) {
  const [having, setHaving] = useState(false);
  useEffect(() => {
    if (!mayDecide(owner) || withoutPasskeys()) return;
    ask('GET', '/owner/passkeys').then(
      ({ passkeys }) =>
        setHaving(passkeys.some(({ status, discoverable }) => status === 'active' && discoverable !== false)),
      () => {},
    );
  }, []);
  return having;
}
