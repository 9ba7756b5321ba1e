// The organisation's notice channels: the list with their state, and adding, changing, testing and removing them.
/** @typedef {import('../../answers.ts').Channel} Channel */
/** @typedef {import('../../answers.ts').ChannelKind} ChannelKind */
/** @typedef {import('/console/shell/schema-fields.js').Schema} Schema */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { kindName, rulesText, stateOf } from '/console/notices/channel-labels.js';
import { RemoveChannel } from '/console/notices/dialogs.js';
import { RulesFields, rulesOf, writtenOf } from '/console/notices/rules-fields.js';
import { useAnnounce } from '/console/shell/announce.js';
import { valueTo } from '/console/shell/fields.js';
import { Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { MadeSecret, Question } from '/console/shell/question.js';
import { Field, fieldsOf, givenOf, textOf } from '/console/shell/schema-fields.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

const INTERVAL_MS = 15_000;

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
  const { answer, error, reload } = useLoaded('/owner/channels', INTERVAL_MS);
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
  unreadable: { words: 'Cannot be read', kind: 'bad' },
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
      <p class="small quiet theirs">${stateOf(channel)} ${rulesText(channel)}</p>
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

// The form of a channel, to add or change it: the fields of its kind as the broker describes them, its secret, and its notice rules.
/**
 * Adds a channel when `channel` is absent; `made` receives a key that the broker generated.
 *
 * @param {{ kinds: ChannelKind[], channel?: Channel, made: (name: string, secret: string) => void, changed: () => Promise<void>, onClose: () => void }} props
 */
function ChannelForm({ kinds, channel, made, changed, onClose }) {
  const [kindId, setKind] = useState(channel?.kind ?? kinds[0]?.kind ?? '');
  const [name, setName] = useState(channel?.name ?? '');
  const [texts, setTexts] = useState(/** @type {Record<string, string>} */ ({}));
  const [secret, setSecret] = useState('');
  const [written, write] = useState(() => writtenOf(channel?.rules ?? {}));
  const kind = kinds.find((one) => one.kind === kindId);
  if (!kind) return null;
  const fields = fieldsOf(/** @type {Schema} */ (kind.settings));
  const shown = (/** @type {string} */ field, /** @type {Schema} */ schema) =>
    texts[field] ?? textOf(schema, channel?.settings[field]);
  const work = async () => {
    const settings = Object.fromEntries(
      fields.map(({ name: field, schema }) => [field, givenOf(field, schema, shown(field, schema))]),
    );
    const given = /** @type {any} */ ({
      kind: kindId,
      ...settings,
      ...rulesOf(written),
      ...(secret !== '' && { secret }),
    });
    if (channel) {
      await ask('POST', `/owner/channels/${channel.id}/settings`, given);
      await changed();
      return `The channel “${visibleLine(channel.name)}” is changed.`;
    }
    const added = await ask('POST', '/owner/channels', { name, ...given });
    await changed();
    if (added.secret) {
      made(added.name, added.secret);
      return undefined;
    }
    return `The channel “${visibleLine(added.name)}” is there. Test it.`;
  };
  const title = channel ? `Change “${visibleLine(channel.name)}”` : 'Add a channel';
  return html`<${Question} title=${title} verb=${channel ? 'Save' : 'Add'} work=${work} onClose=${onClose}>
    ${
      !channel &&
      html`<div class="field"><label for="channel-kind">Kind</label>
        <select id="channel-kind" onChange=${valueTo(setKind)}>${kinds.map((one) => html`<option key=${one.kind} value=${one.kind} selected=${one.kind === kindId}>${kindName(one.kind)}</option>`)}</select></div>
        <div class="field"><label for="channel-name">Name</label>
        <input id="channel-name" type="text" required maxlength="64" autocomplete="off" spellcheck="false" value=${name} onInput=${valueTo(setName)} /></div>`
    }
    ${fields.map((field) => html`<${Field} key=${`${kindId} ${field.name}`} ...${field} value=${shown(field.name, field.schema)} onValue=${(/** @type {string} */ text) => setTexts({ ...texts, [field.name]: text })} />`)}
    <${SecretField} kind=${kind} channel=${channel} value=${secret} onValue=${setSecret} />
    <details class="rules"><summary>Which notices, and when</summary><${RulesFields} written=${written} write=${write} /></details>
  <//>`;
}

/** @param {{ kind: ChannelKind, channel: Channel | undefined, value: string, onValue: (value: string) => void }} props */
function SecretField({ kind: { secret, secret_is: is }, channel, value, onValue }) {
  const required = secret === 'needed' && !channel;
  const hint = channel?.has_secret
    ? 'Leave it empty to keep the current one, which is never shown.'
    : secret === 'made'
      ? 'Leave it empty: the broker generates one and shows it once.'
      : 'It is stored encrypted and never shown again.';
  return html`<div class="field">
    <label for="channel-secret">Secret${required ? '' : html` <span class="quiet">(optional)</span>`}</label>
    <input id="channel-secret" type="password" autocomplete="new-password" maxlength="4096" required=${required} aria-describedby="secret-hint" value=${value} onInput=${valueTo(onValue)} />
    <span class="hint" id="secret-hint">It is ${is}. ${hint}</span>
  </div>`;
}
