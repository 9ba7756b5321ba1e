// The form to verify another receipt, pasted or from a file.
import { html, useState } from '/console/html.js';
import { valueTo } from '/console/shell/fields.js';

/**
 * @param {{ bring: (text: string) => void, first: boolean }} props `first`: whether nothing else is on the page
 */
export function OtherReceipt({ bring, first }) {
  const [text, setText] = useState('');
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (text.trim()) bring(text);
  };
  const read = async (/** @type {{ currentTarget: HTMLInputElement }} */ { currentTarget }) => {
    const file = currentTarget.files?.[0];
    if (file && file.size < 1_000_000) setText(await file.text());
  };
  return html`<form class="sheet part other" onSubmit=${submit}>
    <h2>${first ? 'Check a receipt' : 'Check another one'}</h2>
    ${first && html`<p class="quiet">Every decision and change leaves a signed receipt. Open one from the activity, or paste one that somebody sent you: it is checked in this page.</p>`}
    <div class="field">
      <label for="receipt-text">Receipt, or the JSON of one</label>
      <textarea id="receipt-text" rows="3" spellcheck="false" autocomplete="off" value=${text} onInput=${valueTo(setText)}></textarea>
    </div>
    <div class="field">
      <label for="receipt-file">or a file</label>
      <input id="receipt-file" type="file" accept=".jws,.json,.txt,application/jose,application/json" onChange=${read} />
    </div>
    <div class="buttons"><button type="submit" class="primary" id="check" disabled=${!text.trim()}>Check</button></div>
  </form>`;
}
