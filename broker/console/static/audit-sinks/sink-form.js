// The form of an audit sink, to add or change it: the fields of its kind as the broker describes them, its secret, format and start position.
/** @typedef {import('../../answers.ts').AuditSink} AuditSink */
/** @typedef {import('../../answers.ts').AuditSinkKind} AuditSinkKind */
/** @typedef {import('/console/shell/schema-fields.js').Schema} Schema */
import { ask } from '/console/api.js';
import { FORMATS, kindName } from '/console/audit-sinks/sink-labels.js';
import { html, useState } from '/console/html.js';
import { valueTo } from '/console/shell/fields.js';
import { Question } from '/console/shell/question.js';
import { Field, fieldsOf, givenOf, nameOf, textOf } from '/console/shell/schema-fields.js';
import { visibleLine } from '/console/visible.js';

/** Returns the parts of the secret; a secret of a single text has the part ''. */
const partsOf = (/** @type {AuditSinkKind} */ { secret_parts: parts }) => (parts.length === 0 ? [''] : parts);

/**
 * Adds a sink when `sink` is absent; `made` receives a key that the broker generated.
 *
 * @param {{ kinds: AuditSinkKind[], sink?: AuditSink, made: (name: string, secret: string) => void, changed: () => Promise<void>, onClose: () => void }} props
 */
export function SinkForm({ kinds, sink, made, changed, onClose }) {
  const [kindId, setKind] = useState(/** @type {string} */ (sink?.kind ?? kinds[0]?.kind ?? ''));
  const [name, setName] = useState('');
  const [format, setFormat] = useState(/** @type {string} */ (sink?.format ?? 'ocsf'));
  const [from, setFrom] = useState('now');
  const [texts, setTexts] = useState(/** @type {Record<string, string>} */ ({}));
  const [secrets, setSecrets] = useState(/** @type {Record<string, string>} */ ({}));
  const kind = kinds.find((one) => one.kind === kindId);
  if (!kind) return null;
  const fields = fieldsOf(/** @type {Schema} */ (kind.settings));
  const shown = (/** @type {string} */ field, /** @type {Schema} */ schema) =>
    texts[field] ?? textOf(schema, sink?.settings[field]);
  const work = async () => {
    const settings = Object.fromEntries(
      fields.map(({ name: field, schema }) => [field, givenOf(field, schema, shown(field, schema))]),
    );
    const secret = secretOf(kind, secrets);
    // The broker validates the settings of a kind.
    if (sink) {
      const change = /** @type {any} */ ({
        settings: { kind: kindId, ...settings },
        format,
        ...(secret && { secret }),
      });
      await ask('POST', `/owner/audit-sinks/${sink.id}/settings`, change);
      await changed();
      return `The audit sink “${visibleLine(sink.name)}” is changed.`;
    }
    const given = /** @type {any} */ ({ name, kind: kindId, ...settings, format, from, ...(secret && { secret }) });
    const added = await ask('POST', '/owner/audit-sinks', given);
    await changed();
    if (added.secret) {
      made(added.name, added.secret);
      return undefined;
    }
    return `The audit is pushed to “${visibleLine(added.name)}”. Test it.`;
  };
  const title = sink ? `Change “${visibleLine(sink.name)}”` : 'Add an audit sink';
  return html`<${Question} title=${title} verb=${sink ? 'Save' : 'Add'} work=${work} onClose=${onClose}>
    ${
      !sink &&
      html`<div class="field"><label for="sink-kind">Kind</label>
        <select id="sink-kind" onChange=${valueTo(setKind)}>${kinds.map((one) => html`<option key=${one.kind} value=${one.kind} selected=${one.kind === kindId}>${kindName(one.kind)}</option>`)}</select></div>
        <div class="field"><label for="sink-name">Name</label>
        <input id="sink-name" type="text" required maxlength="64" autocomplete="off" spellcheck="false" value=${name} onInput=${valueTo(setName)} /></div>`
    }
    ${fields.map((field) => html`<${Field} key=${`${kindId} ${field.name}`} ...${field} value=${shown(field.name, field.schema)} onValue=${(/** @type {string} */ text) => setTexts({ ...texts, [field.name]: text })} />`)}
    ${kind.secret !== null && partsOf(kind).map((part) => html`<${SecretField} key=${`${kindId} ${part}`} kind=${kind} part=${part} sink=${sink} value=${secrets[part] ?? ''} onValue=${(/** @type {string} */ text) => setSecrets({ ...secrets, [part]: text })} />`)}
    <div class="field"><label for="sink-format">Format</label>
      <select id="sink-format" onChange=${valueTo(setFormat)}>${Object.entries(FORMATS).map(([id, words]) => html`<option key=${id} value=${id} selected=${id === format}>${words}</option>`)}</select></div>
    ${
      !sink &&
      html`<div class="field"><label for="sink-from">Begins with</label>
        <select id="sink-from" onChange=${valueTo(setFrom)}>
          <option value="now" selected=${from === 'now'}>new rows only</option>
          <option value="beginning" selected=${from === 'beginning'}>the first row on record</option>
        </select></div>`
    }
  <//>`;
}

/** Returns the secret for the owner API; undefined when none was entered. @param {AuditSinkKind} kind @param {Record<string, string>} texts */
function secretOf(kind, texts) {
  if (kind.secret_parts.length === 0) return texts[''] || undefined;
  const written = kind.secret_parts.filter((part) => texts[part]).map((part) => [part, texts[part]]);
  return written.length === 0 ? undefined : Object.fromEntries(written);
}

/** @param {{ kind: AuditSinkKind, part: string, sink: AuditSink | undefined, value: string, onValue: (value: string) => void }} props */
function SecretField({ kind: { secret, secret_is: is }, part, sink, value, onValue }) {
  const id = part === '' ? 'sink-secret' : `sink-${part}`;
  const required = secret === 'needed' && !sink && part !== 'session_token';
  const hint = sink?.has_secret
    ? 'Leave it empty to keep the current one, which is never shown.'
    : secret === 'made'
      ? 'Leave it empty: the broker generates a signing key and shows it once.'
      : 'It is stored encrypted and never shown again.';
  return html`<div class="field">
    <label for=${id}>${part === '' ? 'Secret' : nameOf(part)}${required ? '' : html` <span class="quiet">(optional)</span>`}</label>
    <input id=${id} type="password" autocomplete="new-password" maxlength="4096" required=${required} aria-describedby=${`${id}-hint`} value=${value} onInput=${valueTo(onValue)} />
    <span class="hint" id=${`${id}-hint`}>${part === '' ? `It is ${is}. ` : ''}${hint}</span>
  </div>`;
}
