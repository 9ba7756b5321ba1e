// The values of what a governance file names: written here or taken from files, sent with the file, and shown nowhere.
/** @typedef {import('/console/governance/references.js').Reference} Reference */
import { withoutLastBreak } from '/console/governance/references.js';
import { html, useId } from '/console/html.js';
import { valueTo } from '/console/shell/fields.js';
import { visibleLine } from '/console/visible.js';

/** By key. @typedef {Readonly<Record<string, string>>} Values */

/** @param {{ references: readonly Reference[], values: Values, write: (values: Values) => void }} props */
export function ValueFields({ references, values, write }) {
  return html`<fieldset class="values" id="values">
    <legend>What the file names</legend>
    <p class="quiet small">The file names these and does not hold them. They are sealed in the broker's store, and nobody is shown them again.</p>
    ${references.map(({ key }) => html`<${ValueField} key=${key} name=${key} value=${values[key] ?? ''} hear=${(/** @type {string} */ value) => write({ ...values, [key]: value })} />`)}
  </fieldset>`;
}

/** @param {{ name: string, value: string, hear: (value: string) => void }} props */
function ValueField({ name, value, hear }) {
  const id = useId();
  const [kind, where] = [name.slice(0, name.indexOf(':')), name.slice(name.indexOf(':') + 1)];
  const chosen = async (/** @type {{ currentTarget: HTMLInputElement }} */ { currentTarget }) =>
    hear(withoutLastBreak((await currentTarget.files?.[0]?.text()) ?? ''));
  return html`<div class="field">
    <label for=${id}>${kind === 'file' ? 'The file ' : ''}<code class="theirs">${visibleLine(where)}</code></label>
    ${
      kind === 'file'
        ? html`<input id=${id} data-value=${name} type="file" onChange=${chosen} />`
        : html`<input id=${id} data-value=${name} type="password" autocomplete="new-password" autocapitalize="none" spellcheck=${false} value=${value} onInput=${valueTo(hear)} />`
    }
  </div>`;
}
