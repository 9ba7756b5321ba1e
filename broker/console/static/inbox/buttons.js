// The decision buttons at the end of an opened entry.
/** @typedef {import('/console/inbox/entries.js').Act} Act */
import { html, useEffect, useState } from '/console/html.js';
import { mayDecide, useOwner } from '/console/shell/owner.js';

/** A button that just appeared under the pointer ignores clicks for this time, since they were meant for something else. */
const SETTLES_MS = 500;
/** @type {readonly [words: string, doing: string]} */
const DENY = ['Deny…', 'Denying…'];

/**
 * `approve`: the text of the approve button; without it the button is omitted. `passkey`: whether a passkey can be used. `seen`: whether all of the
 * entry was seen; `why`: why it cannot be approved yet, or by this owner. `busy`: the action in flight. `act(what)` starts an action. `deny`: the
 * text of the deny button, and its text in flight. `not`: why this owner cannot decide here.
 *
 * @param {{
 *   approve: string | false, passkey?: boolean, deny?: typeof DENY, seen: boolean, why: string | false | undefined,
 *   not?: string | false, busy: Act | undefined, act: (what: Act) => void,
 * }} props
 */
export function Buttons({ approve, passkey, deny = DENY, seen, why, not, busy, act }) {
  const settled = useSettled();
  const owner = useOwner();
  if (!mayDecide(owner) || not)
    return html`
      <footer class="decide">
        <p class="small said">${mayDecide(owner) ? not : `Your role is ${owner.role}: you may look. An approver or an admin decides.`}</p>
      </footer>
    `;
  const button = (
    /** @type {Act} */ what,
    /** @type {string} */ words,
    /** @type {string} */ doing,
    /** @type {string} */ kind,
    /** @type {boolean} */ disabled,
  ) => html`
    <button type="button" class="${what} ${kind}" disabled=${disabled} aria-disabled=${Boolean(busy)} onClick=${() => act(what)}>
      ${busy === what ? doing : words}
    </button>
  `;
  const soon = !seen || !settled;
  return html`
    <footer class="decide" data-settled=${settled}>
      ${why && html`<p class="small said">${why}</p>`}
      <div class="buttons">
        ${approve && button('approve', approve, 'Approving…', 'primary', soon)}
        ${passkey && button('passkey', 'Approve with passkey', 'Waiting for your passkey…', '', soon)}
        ${button('deny', deny[0], deny[1], 'danger', false)}
        ${passkey && button('deny-passkey', 'Deny with passkey…', 'Waiting for your passkey…', 'danger', false)}
      </div>
    </footer>
  `;
}

function useSettled() {
  const [settled, setSettled] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(true), SETTLES_MS);
    return () => clearTimeout(timer);
  }, []);
  return settled;
}
