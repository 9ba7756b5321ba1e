// Adds a passkey of the device in use.
/** @typedef {import('../../answers.ts').Passkey} Passkey */
import { html, useState } from '/console/html.js';
import { enrol, suggestedName, wasCancelled, withoutPasskeys } from '/console/passkeys/ceremony.js';
import { canDo } from '/console/passkeys/use-provider.js';
import { useAnnounce } from '/console/shell/announce.js';
import { valueTo } from '/console/shell/fields.js';
import { mayDecide, useOwner } from '/console/shell/owner.js';
import { Reauthenticate, wantsReauthentication } from '/console/shell/reauthenticate.js';
import { useDoing } from '/console/shell/use-doing.js';

/**
 * Returns an unused name: `Mac`, `Mac 2`.
 *
 * @param {string[]} taken
 */
function freeName(taken) {
  const name = suggestedName();
  for (let n = 1; ; n++) {
    const next = n === 1 ? name : `${name} ${n}`;
    if (!taken.includes(next)) return next;
  }
}

/** @param {{ passkeys: Passkey[], provider: string | null | undefined, enrolled: () => Promise<void> }} props */
export function Enrol({ passkeys, provider, enrolled }) {
  const owner = useOwner();
  const announce = useAnnounce();
  const taken = passkeys.map(({ device_name }) => device_name);
  // Undefined: the suggested name.
  const [written, setWritten] = useState(/** @type {string | undefined} */ (undefined));
  const { busy, problem, run } = useDoing();
  const without = withoutPasskeys();
  if (!mayDecide(owner))
    return html`<p class="notice" data-kind="wait">Your role is ${owner.role}: you may look, and decide nothing. Ask an admin for the role
      approver before you add a passkey.</p>`;
  if (without) return html`<p class="notice" data-kind="wait">${without}</p>`;
  const name = written ?? freeName(taken);
  const hasOne = passkeys.some(({ status }) => status === 'active');
  const add = async (byPasskey = false) => {
    if (name.trim() === '') return;
    await run(async () => {
      const { device_name } = await enrol(name.trim(), byPasskey);
      setWritten(undefined);
      announce(`“${device_name}” can ${canDo(provider)} from now on.`, 'good');
      await enrolled();
    });
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    void add();
  };
  return html`<form class="sheet enrol" onSubmit=${submit}>
    <h2>Add this device</h2>
    <div class="field">
      <label for="device">Its name</label>
      <input id="device" value=${name} maxlength="64" required autocomplete="off" onInput=${valueTo(setWritten)} />
      <span class="hint">For you to recognise it by. Receipts name the passkey, not the device.</span>
    </div>
    <button type="submit" class="primary" disabled=${busy}>${busy ? 'Waiting for your device…' : 'Add a passkey'}</button>
    ${problem && wantsReauthentication(problem) && html`<${Reauthenticate} error=${problem} byPasskey=${hasOne ? () => add(true) : undefined} />`}
    <div role="status">${problem && !wantsReauthentication(problem) && html`<p class="notice" data-kind=${wasCancelled(problem) ? 'wait' : 'bad'}>${problem.message}</p>`}</div>
  </form>`;
}
