// Adding a passkey of the device that somebody holds.
import { html, useState } from '/console/html.js';
import { enrol, suggestedName, withoutPasskeys } from '/console/passkeys-ceremony.js';

const MOST_CHARACTERS = 64;

/** A name that no other passkey has: `Mac`, `Mac 2`. */
function freeName(taken) {
  const name = suggestedName();
  for (let n = 1; ; n++) {
    const next = n === 1 ? name : `${name} ${n}`;
    if (!taken.includes(next)) return next;
  }
}

/** `enrolled` hears what to say of it. */
export function Enrol({ me, passkeys, enrolled }) {
  const taken = passkeys.map(({ device_name }) => device_name);
  const [name, setName] = useState(() => freeName(taken));
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState();
  const without = withoutPasskeys();
  if (me.role === 'viewer')
    return html`<p class="notice" data-kind="wait">Your role is viewer: you may look, and decide nothing. Ask an admin for the role
      approver before you add a passkey.</p>`;
  if (without) return html`<p class="notice" data-kind="wait" id="without">${without}</p>`;
  const add = async (event) => {
    event.preventDefault();
    if (busy || name.trim() === '') return;
    setBusy(true);
    setProblem(undefined);
    try {
      const { device_name } = await enrol(name.trim());
      setName(freeName([...taken, device_name]));
      await enrolled(`“${device_name}” can approve from now on.`);
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  };
  return html`<form class="sheet enrol" onSubmit=${add}>
    <h2>Add this device</h2>
    <div class="field">
      <label for="device">Its name</label>
      <input id="device" value=${name} maxlength=${MOST_CHARACTERS} required autocomplete="off" onInput=${({ target }) => setName(target.value)} />
      <span class="hint">For you to recognise it by. Receipts name the passkey, not the device.</span>
    </div>
    <button type="submit" class="primary" disabled=${busy}>${busy ? 'Waiting for your device…' : 'Add a passkey'}</button>
    <p class="problem small" data-kind=${problem?.cancelled ? 'wait' : 'bad'} role="status">${problem?.message}</p>
  </form>`;
}
