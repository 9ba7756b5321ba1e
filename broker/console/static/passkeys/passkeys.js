// The passkeys page of an owner: which devices exist and what they can do, adding, renaming and removing passkeys.
/** @typedef {import('../../answers.ts').Passkey} Passkey */
import { html, useState } from '/console/html.js';
import { enrol, suggestedName, wasCancelled, withoutPasskeys } from '/console/passkeys/ceremony.js';
import { Remove, Rename } from '/console/passkeys/dialogs.js';
import { canDo, useProvider } from '/console/passkeys/use-provider.js';
import { useAnnounce } from '/console/shell/announce.js';
import { valueTo } from '/console/shell/fields.js';
import { Empty, Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { mayDecide, useOwner } from '/console/shell/owner.js';
import { Reauthenticate, wantsReauthentication } from '/console/shell/reauthenticate.js';
import { day } from '/console/shell/time.js';
import { useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

const INTERVAL_MS = 15_000;
const SLOW_INTERVAL_MS = 600_000;

/** @typedef {typeof Rename | typeof Remove} Question */

export function PasskeysPage() {
  const { answer, error, reload } = useLoaded('/owner/passkeys', INTERVAL_MS);
  const [asked, setAsked] = useState(/** @type {{ Ask: Question, passkey: Passkey } | undefined} */ (undefined));
  const provider = useProvider();
  const owner = useOwner();
  const passkeys = answer?.passkeys;
  return html`
    <div class="page-head"><h1>Passkeys</h1></div>
    <div class="passkeys stack">
      <${About} provider=${provider} />
      ${error && html`<${Failed} error=${error} again=${reload} />`}
      ${!passkeys && !error && html`<${Loading} />`}
      ${passkeys?.length === 0 && html`<${NoPasskeys} may=${mayDecide(owner)} />`}
      ${
        passkeys &&
        passkeys.length > 0 &&
        html`<ul role="list" class="sheet rows" id="passkeys">
          ${passkeys.map((passkey) => html`<${Row} key=${passkey.id} passkey=${passkey} provider=${provider} ask=${(/** @type {Question} */ Ask) => setAsked({ Ask, passkey })} />`)}
        </ul>`
      }
      ${passkeys && html`<${Enrol} passkeys=${passkeys} provider=${provider} enrolled=${reload} />`}
    </div>
    ${asked && html`<${asked.Ask} passkey=${asked.passkey} onClose=${() => setAsked(undefined)} onDone=${reload} />`}
  `;
}

/** @param {{ provider: string | null | undefined }} props */
function About({ provider }) {
  const setting = useLoaded('/owner/organisation', SLOW_INTERVAL_MS).answer?.passkey_deciders;
  const others =
    setting === 'agents_owner' || (setting === 'default' && provider)
      ? ' From the link alone you decide for agents that you own; for the others you sign in first.'
      : '';
  if (provider)
    return html`<p class="quiet">You sign in at <span class="theirs">${visibleLine(provider)}</span>, not with a passkey. With one you approve or deny
      held calls on this device.${others}</p>`;
  return html`<p class="quiet">With a passkey you ${provider === null && 'sign in, and '}approve or deny a held call from its link, on this device, without
    a password or a sign-in link.${others}</p>`;
}

/** @param {{ passkey: Passkey, provider: string | null | undefined, ask: (Ask: Question) => void }} props */
function Row({ passkey, provider, ask }) {
  const { device_name, created_at, last_used_at, synced, discoverable, status } = passkey;
  const name = visibleLine(device_name);
  return html`<li class="row" data-status=${status}>
    <${Key} />
    <div class="what">
      <p class="name"><strong class="theirs">${name}</strong>
        ${status === 'disabled' && html`<span class="badge" data-kind="bad">Disabled</span>`}
        ${synced && html`<span class="badge" title="It is on all devices of its account.">Synced</span>`}</p>
      <p class="quiet small">Added ${day(created_at)}. ${last_used_at ? `Last used ${day(last_used_at)}.` : 'Never used.'}</p>
      ${
        status === 'active' &&
        discoverable !== true &&
        html`<p class="small quiet">${
          discoverable === false ? 'It cannot' : 'It may be one that cannot'
        } ${provider === null && 'sign in or '}deny, only approve calls of agents that you own. To change that, remove it and add this device again.</p>`
      }
      ${
        status === 'disabled' &&
        html`<p class="small why">Its counter did not increase, which happens if somebody copied it. It is no longer accepted and cannot be
        enabled again: remove it, and find out who had this device. The event is on record.</p>`
      }
    </div>
    <div class="buttons">
      <button type="button" class="compact rename" onClick=${() => ask(Rename)}>Rename…<span class="unseen"> ${name}</span></button>
      <button type="button" class="compact danger" onClick=${() => ask(Remove)}>Remove…<span class="unseen"> ${name}</span></button>
    </div>
  </li>`;
}

/** `may`: whether this owner may add one; otherwise the page explains why below. @param {{ may: boolean }} props */
const NoPasskeys = ({ may }) => html`<${Empty} title="No passkeys yet">
  ${may && html`<p class="quiet">Add the device that you are holding. A phone is best: that is where the link will reach you.</p>`}
<//>`;

const Key =
  () => html`<svg class="key" viewBox="0 0 24 24" width="22" height="22" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round">
  <circle cx="8" cy="9" r="4.5" /><path d="M12 10.5l8 0v3.5m-3.5-3.5v2.5" />
</svg>`;

// Adds a passkey of the device in use.
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
function Enrol({ passkeys, provider, enrolled }) {
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
