// The form of a channel, to add or change it: the fields of its kind as the broker describes them, its secret, and its notice rules.
/** @typedef {import('../../answers.ts').Channel} Channel */
/** @typedef {import('../../answers.ts').ChannelKind} ChannelKind */
/** @typedef {import('/console/shell/schema-fields.js').Schema} Schema */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { kindName } from '/console/notices/channel-labels.js';
import { RulesFields, rulesOf, writtenOf } from '/console/notices/rules-fields.js';
import { valueTo } from '/console/shell/fields.js';
import { Question } from '/console/shell/question.js';
import { Field, fieldsOf, givenOf, textOf } from '/console/shell/schema-fields.js';
import { visibleLine } from '/console/visible.js';

/**
 * Adds a channel when `channel` is absent; `made` receives a key that the broker generated.
 *
 * @param {{ kinds: ChannelKind[], channel?: Channel, made: (name: string, secret: string) => void, changed: () => Promise<void>, onClose: () => void }} props
 */
export function ChannelForm({ kinds, channel, made, changed, onClose }) {
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
