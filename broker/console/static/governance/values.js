// The fields for values that a governance file references: entered or taken from files, sent with the file, and not shown.
/** @typedef {import('/console/governance/references.js').Reference} Reference */
import { withoutLastBreak } from '/console/governance/references.js';
import { html, useId } from '/console/html.js';
import { valueTo } from '/console/shell/fields.js';
import { FileInput } from '/console/shell/file-input.js';
import { visibleLine } from '/console/visible.js';

/** By key. @typedef {Readonly<Record<string, string>>} Values */

/** `needs`: keys of values that are not stored yet. @param {{ references: readonly Reference[], needs: readonly string[], values: Values, write: (values: Values) => void }} props */
export function ValueFields({ references, needs, values, write }) {
  return html`<fieldset class="values" id="values">
    <legend>What the file names</legend>
    <p class="quiet small">The file names these values but does not contain them. They are stored encrypted and never shown again. A stored value is kept unless you enter a new one.</p>
    ${references.map(({ key }) => html`<${ValueField} key=${key} name=${key} stays=${!needs.includes(key)} value=${values[key] ?? ''} hear=${(/** @type {string} */ value) => write({ ...values, [key]: value })} />`)}
  </fieldset>`;
}

/** @param {{ name: string, stays: boolean, value: string, hear: (value: string) => void }} props */
function ValueField({ name, stays, value, hear }) {
  const id = useId();
  const [kind, where] = [name.slice(0, name.indexOf(':')), name.slice(name.indexOf(':') + 1)];
  return html`<div class="field">
    <label for=${id}>${kind === 'file' ? 'The file ' : ''}<code class="theirs">${visibleLine(where)}</code>${stays && html` <span class="quiet">is stored, and stays</span>`}</label>
    ${
      kind === 'file'
        ? html`<${FileInput} id=${id} data-value=${name} read=${(/** @type {string} */ text) => hear(withoutLastBreak(text))} />`
        : html`<input id=${id} data-value=${name} type="password" autocomplete="new-password" autocapitalize="none" spellcheck=${false} value=${value} onInput=${valueTo(hear)} />`
    }
  </div>`;
}
