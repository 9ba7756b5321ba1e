// The dialogs in which an admin changes a connection: its secret, its timeouts, and its removal.
/** @typedef {import('../../answers.ts').Connection} Connection */
/** @typedef {import('/console/connections/steps.js').Tried} Tried */
/** @typedef {import('/console/connections/credential.js').Written} Written */
import { ask } from '/console/api.js';
import { describeTest } from '/console/connections/connection-labels.js';
import { CredentialFields, secretOf } from '/console/connections/credential.js';
import { replaceTested, replaceUntested } from '/console/connections/steps.js';
import { html, useId, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Command } from '/console/shell/command.js';
import { Dialog } from '/console/shell/dialog.js';
import { valueTo } from '/console/shell/fields.js';
import { Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { Question } from '/console/shell/question.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

/** @typedef {{ connection: Connection, onClose: () => void, onDone: () => void }} Props */

/** Replaces the secret only if the platform accepts the new one, or if the admin insists. @param {Props} props */
export function Replace({ connection, onClose, onDone }) {
  const { id, label, platform, secret_from } = connection;
  const { answer, error, reload } = useLoaded(/** @type {const} */ (`/owner/platforms/${platform}`), 600_000);
  const [written, write] = useState(/** @type {Written} */ ({}));
  const [refused, setRefused] = useState(/** @type {Tried | undefined} */ (undefined));
  const { busy, problem, gone, run } = useDoing();
  const announce = useAnnounce();
  const parts = answer?.secret_parts ?? null;
  const secret = secretOf(parts, written);
  const store = (/** @type {boolean} */ anyway) =>
    run(async () => {
      if (secret === undefined) return;
      setRefused(undefined);
      /** @type {Tried | undefined} */
      const test = anyway ? undefined : await replaceTested(connection, secret);
      if (anyway) await replaceUntested(id, secret);
      const name = visibleLine(label);
      const left = test?.left ?? '';
      if (test && !test.ok) {
        if (!gone.current) return setRefused(test);
        return announce(`${describeTest(test).words}. “${name}” still uses the old secret. ${left}`, 'bad');
      }
      // Nothing else on the screen tells a person who closed the dialog that the secret was replaced.
      announce(`“${name}” uses the new secret. ${left}`, left ? 'wait' : gone.current ? '' : 'good');
      onDone();
      if (!gone.current) onClose();
    });
  return html`<${Dialog} title="Replace the secret" onClose=${onClose} onSubmit=${() => store(false)}>
    <p><strong class="theirs">${visibleLine(label)}</strong> uses the new one from the next call on. It is tested at the platform first; if the platform rejects it, nothing is replaced.</p>
    ${secret_from && html`<p class="quiet small">A governance file takes it from <code class="theirs">${visibleLine(secret_from)}</code>: change it there, too.</p>`}
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${!answer && !error && html`<${Loading} />`}
    ${answer && html`<${CredentialFields} parts=${parts} what="The new secret" written=${written} write=${write} />`}
    <${Problem} problem=${problem} />
    ${refused && html`<p class="notice" data-kind="bad" role="alert" id="refused"><span><strong>${describeTest(refused).words}.</strong> <span class="theirs">${visibleLine(refused.detail)}</span> The old secret is still in use. ${refused.left ?? ''}</span></p>`}
    <div class="buttons">
      <button type="button" onClick=${onClose}>Cancel</button>
      ${refused && html`<button type="button" class="danger" id="replace-anyway" disabled=${busy || secret === undefined} onClick=${() => store(true)}>Replace all the same</button>`}
      <button type="submit" class="primary" id="replace" disabled=${busy || secret === undefined}>${busy ? 'Asking the platform…' : 'Test and replace'}</button>
    </div>
  <//>`;
}

const shown = (/** @type {number | null} */ seconds) => (seconds === null ? '' : String(seconds));
const sent = (/** @type {string} */ text) => (text.trim() === '' ? null : Number(text));

/** The timeouts of a connection; an empty field means the default. @param {Props} props */
export function TimeoutsForm({ connection: { id, label, idle_seconds, wait_seconds, url }, onClose, onDone }) {
  const field = useId();
  const [idle, setIdle] = useState(shown(idle_seconds));
  const [wait, setWait] = useState(shown(wait_seconds));
  const save = async () => {
    await ask('POST', `/owner/connections/${id}/settings`, { idle_seconds: sent(idle), wait_seconds: sent(wait) });
    onDone();
    return `The settings of “${visibleLine(label)}” are changed.`;
  };
  return html`<${Question} title="Settings of a connection" verb="Save" id="save-settings" work=${save} onClose=${onClose}>
    <p><strong class="theirs">${visibleLine(label)}</strong></p>
    ${url && html`<p>Programs of this platform that are not modified get this address instead of its own:</p><${Command} text=${url} />`}
    <div class="field">
      <label for="${field}-idle">How long an answer may be silent (seconds)</label>
      <input id="${field}-idle" data-setting="idle" type="number" min="1" max="600" step="1" placeholder="as the platform says" aria-describedby="${field}-idle-hint" value=${idle} onInput=${valueTo(setIdle)} />
      <p class="hint" id="${field}-idle-hint">Slow models and tools need more. Empty: the setting of the platform, else 60 for a stream, 30 for another answer, 120 for a tool.</p>
    </div>
    <div class="field">
      <label for="${field}-wait">How long a request waits for a person (seconds)</label>
      <input id="${field}-wait" data-setting="wait" type="number" min="0" max="120" step="1" placeholder="25" aria-describedby="${field}-wait-hint" value=${wait} onInput=${valueTo(setWait)} />
      <p class="hint" id="${field}-wait-hint">For unmodified clients, unless the client sets it itself. Empty: 25.</p>
    </div>
  <//>`;
}

/** Removes a connection and its credential. @param {Props} props */
export function Remove({ connection: { id, label, platform, per_person }, onClose, onDone }) {
  const name = visibleLine(label);
  const remove = async () => {
    await ask('DELETE', `/owner/connections/${id}`);
    return `“${name}” is removed.`;
  };
  return html`<${Question} title="Remove this connection?" verb="Remove" kind="danger solid" id="remove" work=${remove} onClose=${onClose} onDone=${onDone}>
    <p>The broker forgets <strong class="theirs">${name}</strong> with its credential, and calls to <code class="theirs">${visibleLine(platform)}</code> no longer use it. A credential that was
    pasted is still good at the platform: revoke it there.</p>
    ${per_person && html`<p class="notice" data-kind="wait">The tokens that people gave for it are revoked at the platform: each person has to consent again.</p>`}
    <p class="quiet small">A connection that a grant names cannot be removed: change the grant first.</p>
  <//>`;
}
