// The push devices of the signed-in owner, this one first.
/** @typedef {import('../../answers.ts').PushDevice} PushDevice */
import { ask } from '/console/api.js';
import { html, useEffect, useState } from '/console/html.js';
import { rulesText, stateOf } from '/console/notices/channel-labels.js';
import { RemoveDevice, RulesDialog } from '/console/notices/dialogs.js';
import { ownHash, turnOff, turnOn, withoutPush } from '/console/notices/push.js';
import { suggestedName } from '/console/passkeys/ceremony.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

const INTERVAL_MS = 15_000;

export function Devices() {
  const { answer, error, reload } = useLoaded('/owner/push-subscriptions', INTERVAL_MS);
  const [mine, setMine] = useState(/** @type {string | undefined} */ (undefined));
  const [asked, setAsked] = useState(
    /** @type {{ what: 'rules' | 'remove', device: PushDevice } | undefined} */ (undefined),
  );
  useEffect(() => {
    ownHash().then(setMine, () => {});
  }, [answer]);
  const devices = answer?.subscriptions;
  const here = devices?.find(({ endpoint_hash }) => endpoint_hash === mine);
  const close = () => setAsked(undefined);
  const remove = async (/** @type {PushDevice} */ { id, endpoint_hash }) => {
    await ask('DELETE', `/owner/push-subscriptions/${id}`);
    if (endpoint_hash === mine) await turnOff();
    setMine(await ownHash());
    await reload();
  };
  return html`<section class="sheet" aria-labelledby="devices-head">
    <h2 id="devices-head">My devices</h2>
    <p class="quiet">Your phone or computer shows notices about what waits for a decision, also while the console is closed. Only you get them.</p>
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${!devices && !error && html`<${Loading} />`}
    ${answer && !here && html`<${ThisDevice} publicKey=${answer.public_key} turnedOn=${reload} />`}
    ${
      devices &&
      devices.length > 0 &&
      html`<ul role="list" class="rows" id="devices">
        ${devices.map((device) => html`<${Device} key=${device.id} device=${device} isHere=${device === here} changed=${reload} ask=${(/** @type {'rules' | 'remove'} */ what) => setAsked({ what, device })} />`)}
      </ul>`
    }
    ${asked?.what === 'remove' && html`<${RemoveDevice} device=${asked.device} remove=${() => remove(asked.device)} onClose=${close} />`}
    ${
      asked?.what === 'rules' &&
      html`<${RulesDialog} title=${`When to notify “${visibleLine(asked.device.device_name)}”`} rules=${asked.device.rules} save=${async (
        /** @type {PushDevice['rules']} */ rules,
      ) => {
        await ask('POST', `/owner/push-subscriptions/${asked.device.id}/settings`, rules);
        await reload();
      }} onClose=${close} />`
    }
  </section>`;
}

/** @param {{ publicKey: string, turnedOn: () => Promise<void> }} props */
function ThisDevice({ publicKey, turnedOn }) {
  const { busy, problem, run } = useDoing();
  const announce = useAnnounce();
  const without = withoutPush();
  if (without) return html`<p class="notice" data-kind="wait" id="without-push">${without}</p>`;
  const on = () =>
    run(async () => {
      await turnOn(publicKey, suggestedName());
      announce('This device gets notices from now on.', 'good');
      await turnedOn();
    });
  return html`<div class="this-device">
    <p>This device does not get notices yet.</p>
    <div class="buttons"><button type="button" class="primary" id="notify-here" disabled=${busy} onClick=${on}>${busy ? 'Waiting for the browser…' : 'Notify me on this device'}</button></div>
    <${Problem} problem=${problem} />
  </div>`;
}

/** @param {{ device: PushDevice, isHere: boolean, changed: () => Promise<void>, ask: (what: 'rules' | 'remove') => void }} props */
function Device({ device, isHere, changed, ask: question }) {
  const { busy, problem, run } = useDoing();
  const announce = useAnnounce();
  const name = visibleLine(device.device_name);
  const test = () =>
    run(async () => {
      const { ok, detail } = await ask('POST', `/owner/push-subscriptions/${device.id}/test`, {});
      announce(detail, ok ? 'good' : 'bad');
      await changed();
    });
  return html`<li class="row" data-device=${device.id}>
    <div class="what">
      <p class="name"><strong class="theirs">${name}</strong>${isHere && html` <span class="badge" data-kind="accent">This device</span>`}
        ${device.status === 'failing' && html` <span class="badge" data-kind="bad">Failing</span>`}${device.status === 'unreadable' && html` <span class="badge" data-kind="bad">Cannot be read</span>`}</p>
      <p class="small quiet theirs">${stateOf(device)} ${rulesText(device)} By ${visibleLine(device.service)}.</p>
      <${Problem} problem=${problem} />
    </div>
    <div class="buttons">
      <button type="button" class="compact test" disabled=${busy} onClick=${test}>Test<span class="unseen"> ${name}</span></button>
      <button type="button" class="compact rules" onClick=${() => question('rules')}>When…<span class="unseen"> ${name}</span></button>
      <button type="button" class="compact danger remove" onClick=${() => question('remove')}>Remove…<span class="unseen"> ${name}</span></button>
    </div>
  </li>`;
}
