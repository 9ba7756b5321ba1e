// The organisation's notice channels: the list with their state, and adding, changing, testing and removing them.
/** @typedef {import('../../answers.ts').Channel} Channel */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { ChannelForm } from '/console/notices/channel-form.js';
import { kindName, rulesInWords, stateOf } from '/console/notices/channel-labels.js';
import { RemoveChannel } from '/console/notices/dialogs.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Failed, Loading } from '/console/shell/empty.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { MadeSecret } from '/console/shell/question.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { useLoaded } from '/console/shell/use-loaded.js';
import { visibleLine } from '/console/visible.js';

const EVERY_MS = 15_000;

export function Channels() {
  const owner = useOwner();
  return html`<section class="sheet" aria-labelledby="channels-head">
    <h2 id="channels-head">Shared channels</h2>
    <p class="quiet">Everybody who reads such a channel gets its notices.</p>
    ${mayChange(owner) ? html`<${List} />` : html`<p id="not-admin">Your role is ${owner.role}: an admin sees and changes them.</p>`}
  </section>`;
}

/** @typedef {{ what: 'add' } | { what: 'change' | 'remove', channel: Channel } | { what: 'made', name: string, secret: string }} Asked */

function List() {
  const { answer, error, reload } = useLoaded('/owner/channels', EVERY_MS);
  const kinds = useLoaded('/owner/channel-kinds', 3_600_000).answer?.kinds;
  const [asked, setAsked] = useState(/** @type {Asked | undefined} */ (undefined));
  const channels = answer?.channels;
  // A dialog's close event fires a moment later: a dialog that was opened meanwhile must stay open.
  const close = () => setAsked((now) => (now === asked ? undefined : now));
  const made = (/** @type {string} */ name, /** @type {string} */ secret) => setAsked({ what: 'made', name, secret });
  return html`
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${!channels && !error && html`<${Loading} />`}
    ${channels?.length === 0 && html`<p id="no-channels">None yet. Slack, a phone with ntfy, a mailbox or a webhook can be one.</p>`}
    ${
      channels &&
      channels.length > 0 &&
      html`<ul role="list" class="rows" id="channels">
        ${channels.map((channel) => html`<${Row} key=${channel.id} channel=${channel} changed=${reload} ask=${(/** @type {'change' | 'remove'} */ what) => setAsked({ what, channel })} />`)}
      </ul>`
    }
    ${kinds && html`<div class="buttons"><button type="button" id="add-channel" onClick=${() => setAsked({ what: 'add' })}>Add a channel…</button></div>`}
    ${kinds && asked?.what === 'add' && html`<${ChannelForm} kinds=${kinds} made=${made} changed=${reload} onClose=${close} />`}
    ${kinds && asked?.what === 'change' && html`<${ChannelForm} kinds=${kinds} channel=${asked.channel} made=${made} changed=${reload} onClose=${close} />`}
    ${asked?.what === 'made' && html`<${MadeSecret} name=${asked.name} secret=${asked.secret} onClose=${close} />`}
    ${
      asked?.what === 'remove' &&
      html`<${RemoveChannel} channel=${asked.channel} onClose=${close} remove=${async () => {
        await ask('DELETE', `/owner/channels/${asked.channel.id}`);
        await reload();
      }} />`
    }
  `;
}

/** @type {Readonly<Record<Channel['status'], { words: string, kind: string }>>} */
const STATES = {
  active: { words: 'Working', kind: 'good' },
  failing: { words: 'Failing', kind: 'bad' },
  gone: { words: 'Gone', kind: 'bad' },
};

/** @param {{ channel: Channel, changed: () => Promise<void>, ask: (what: 'change' | 'remove') => void }} props */
function Row({ channel, changed, ask: question }) {
  const { busy, problem, run } = useDoing();
  const announce = useAnnounce();
  const name = visibleLine(channel.name);
  const state =
    channel.status === 'active' && channel.last_ok_at === null ? { words: 'New', kind: '' } : STATES[channel.status];
  const test = () =>
    run(async () => {
      const { ok, detail } = await ask('POST', `/owner/channels/${channel.id}/test`, {});
      announce(visibleLine(detail), ok ? 'good' : 'bad');
      await changed();
    });
  return html`<li class="row" data-channel=${channel.name}>
    <div class="what">
      <p class="name"><strong class="theirs">${name}</strong> <span class="badge">${kindName(channel.kind)}</span> <span class="badge state" data-kind=${state.kind}>${state.words}</span></p>
      <p class="small quiet theirs">${stateOf(channel)} ${rulesInWords(channel.rules)}</p>
      ${channel.clicks_url && html`<p class="small quiet">Button clicks are received at <code>${channel.clicks_url}</code></p>`}
      ${channel.origin === 'governance' && html`<p class="small quiet">It is defined in the governance file: change it there, or the next apply undoes what you change here.</p>`}
      <${Problem} problem=${problem} />
    </div>
    <div class="buttons">
      <button type="button" class="compact test" disabled=${busy} onClick=${test}>Test<span class="unseen"> ${name}</span></button>
      <button type="button" class="compact change" onClick=${() => question('change')}>Change…<span class="unseen"> ${name}</span></button>
      <button type="button" class="compact danger remove" onClick=${() => question('remove')}>Remove…<span class="unseen"> ${name}</span></button>
    </div>
  </li>`;
}
