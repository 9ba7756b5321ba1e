// The fields of a credential: its secret parts are never shown, and are kept in no address and no storage.
/** @typedef {import('../../answers.ts').SecretPart} SecretPart */
/** @typedef {import('/console/connections/steps.js').Secret} Secret */
import { html, useId } from '/console/html.js';
import { valueTo } from '/console/shell/fields.js';
import { FileInput } from '/console/shell/file-input.js';

/** Values by part; a secret of a single text is under ''. @typedef {Readonly<Record<string, string>>} Written */

/** Returns the secret to send; undefined while a part is missing. @param {readonly SecretPart[] | null} parts @param {Written} written @returns {Secret | undefined} */
export function secretOf(parts, written) {
  // A service account key is one file with all parts.
  if (!parts || hasFile(parts)) return written['']?.trim() || undefined;
  const given = parts.flatMap(({ name }) => (written[name]?.trim() ? [[name, written[name].trim()]] : []));
  const lacks = parts.some(({ name, optional }) => !optional && !written[name]?.trim());
  return lacks ? undefined : Object.fromEntries(given);
}

const hasFile = (/** @type {readonly SecretPart[]} */ parts) => parts.some(({ name }) => name === 'private_key');
const capital = (/** @type {string} */ words) => words.slice(0, 1).toUpperCase() + words.slice(1);

/** `what`: the platform's name for the credential. @param {{ parts: readonly SecretPart[] | null, what: string, written: Written, write: (written: Written) => void }} props */
export function CredentialFields({ parts, what, written, write }) {
  if (parts && hasFile(parts))
    return html`<${FileField} words="The key file of the service account (JSON)" accept=".json,application/json" read=${(/** @type {string} */ text) => write({ '': text })} />`;
  const fields = parts ?? [{ name: '', what, optional: false, open: false }];
  return fields.map(
    (part) => html`<${Field}
      key=${part.name}
      words=${capital(part.what)}
      ...${part}
      value=${written[part.name] ?? ''}
      hear=${(/** @type {string} */ value) => write({ ...written, [part.name]: value })}
    />`,
  );
}

/** @param {{ words: string, name?: string, optional?: boolean, open?: boolean, hint?: string, value: string, hear: (value: string) => void }} props */
export function Field({ words, name = '', optional = false, open = false, hint, value, hear }) {
  const id = useId();
  return html`<div class="field">
    <label for=${id}>${words}${optional && html` <span class="quiet">(optional)</span>`}</label>
    <input id=${id} data-part=${name || 'secret'} type=${open ? 'text' : 'password'} required=${!optional} autocomplete=${open ? 'off' : 'new-password'} autocapitalize="none" spellcheck=${false}
      aria-describedby=${hint ? `${id}-hint` : null} value=${value} onInput=${valueTo(hear)} />
    ${hint && html`<p class="hint" id="${id}-hint">${hint}</p>`}
  </div>`;
}

/** A field for a secret in a file, which the page reads and does not show. @param {{ words: string, accept: string, optional?: boolean, read: (text: string) => void }} props */
export function FileField({ words, accept, optional = false, read }) {
  const id = useId();
  return html`<div class="field">
    <label for=${id}>${words}${optional && html` <span class="quiet">(optional)</span>`}</label>
    <${FileInput} id=${id} data-part="file" required=${!optional} accept=${accept} read=${read} />
  </div>`;
}
