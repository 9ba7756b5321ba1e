// An owner's passkeys: which devices may approve, adding one, renaming and removing.
import { ask } from '/console/api.js';
import { html, render, useCallback, useEffect, useState } from '/console/html.js';
import { Remove, Rename } from '/console/passkeys-dialogs.js';
import { Enrol } from '/console/passkeys-enrol.js';
import { visibleLine } from '/console/visible.js';

const day = (moment) => new Date(moment).toLocaleDateString([], { dateStyle: 'medium' });

function Page() {
  const [me, setMe] = useState();
  const [passkeys, setPasskeys] = useState();
  const [said, setSaid] = useState();
  const look = useCallback(async () => {
    try {
      const [owner, { passkeys: found }] = await Promise.all([ask('GET', '/owner/me'), ask('GET', '/owner/passkeys')]);
      setMe(owner);
      setPasskeys(found);
    } catch ({ message }) {
      setSaid({ kind: 'bad', text: message });
    }
  }, []);
  useEffect(() => {
    look();
  }, []);
  const changed = (text) => {
    setSaid({ kind: 'good', text });
    return look();
  };
  return html`
    <header class="bar"><a class="brand" href="/console"><img src="/console/icon.svg" alt="" width="24" height="24" />Agent Broker</a></header>
    <main class="passkeys">
      <div class="intro">
        <h1>Passkeys</h1>
        <p class="quiet">A passkey approves a held call from its link with one touch: on this device, without signing in.
        It approves calls of the agents that you own.</p>
      </div>
      ${said && html`<p class="notice said" data-kind=${said.kind} role="status">${said.text}</p>`}
      ${passkeys && html`<${List} passkeys=${passkeys} changed=${changed} />`}
      ${me && passkeys && html`<${Enrol} me=${me} passkeys=${passkeys} enrolled=${changed} />`}
    </main>
  `;
}

function List({ passkeys, changed }) {
  const [asked, setAsked] = useState();
  const done = (text) => {
    setAsked(undefined);
    if (text) changed(text);
  };
  if (passkeys.length === 0)
    return html`<section class="sheet empty">
      <${Key} />
      <h2>No passkeys yet</h2>
      <p class="quiet">Add the device that you are holding. A phone is best: that is where the link will reach you.</p>
    </section>`;
  return html`
    <ul role="list" class="sheet list">
      ${passkeys.map(
        (passkey) => html`<li key=${passkey.id} class="part">
          <${Key} />
          <${About} passkey=${passkey} />
          <div class="buttons">
            <button type="button" class="compact" onClick=${() => setAsked({ Ask: Rename, passkey })}>Rename</button>
            <button type="button" class="compact danger" onClick=${() => setAsked({ Ask: Remove, passkey })}>Remove</button>
          </div>
        </li>`,
      )}
    </ul>
    ${asked && html`<${asked.Ask} key=${asked.passkey.id} passkey=${asked.passkey} done=${done} />`}
  `;
}

const About = ({ passkey: { device_name, created_at, last_used_at, synced, status } }) => html`<div class="about">
  <p><strong class="theirs">${visibleLine(device_name)}</strong>
    ${status === 'disabled' && html` <span class="badge" data-kind="bad">Disabled</span>`}
    ${synced && html` <span class="badge" title="It is on all devices of its account.">Synced</span>`}</p>
  <p class="quiet small">Added ${day(created_at)}. ${last_used_at ? `Last used ${day(last_used_at)}.` : 'Never used.'}</p>
  ${
    status === 'disabled' &&
    html`<p class="small why">Its counter did not go up, as it would if somebody had copied it. It approves nothing any more, and
    cannot be enabled again: remove it, and ask yourself who had this device. The event is on record.</p>`
  }
</div>`;

const Key =
  () => html`<svg class="key" viewBox="0 0 24 24" width="22" height="22" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round">
  <circle cx="8" cy="9" r="4.5" /><path d="M12 10.5l8 0v3.5m-3.5-3.5v2.5" />
</svg>`;

render(html`<${Page} />`, document.getElementById('page'));
