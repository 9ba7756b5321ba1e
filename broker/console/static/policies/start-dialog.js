// The dialog that starts a new policy from a template or from another policy's rules.
/** @typedef {import('../../answers.ts').Policy} Policy */
import { html, useState } from '/console/html.js';
import { LIST } from '/console/policies/place.js';
import { STARTS } from '/console/policies/starts.js';
import { Dialog } from '/console/shell/dialog.js';
import { valueTo } from '/console/shell/fields.js';
import { navigate } from '/console/shell/router.js';
import { visibleLine } from '/console/visible.js';

/** @param {{ policies: readonly Policy[], onClose: () => void }} props */
export function StartDialog({ policies, onClose }) {
  const [chosen, choose] = useState('careful');
  const [from, setFrom] = useState(policies[0]?.name ?? '');
  const begin = () =>
    navigate(chosen === 'copy' ? `${LIST}?new=copy&from=${encodeURIComponent(from)}` : `${LIST}?new=${chosen}`);
  const option = (/** @type {string} */ value, /** @type {string} */ title, /** @type {string} */ what) => html`
    <label class="choice" key=${value}>
      <input type="radio" name="start" value=${value} checked=${chosen === value} onChange=${() => choose(value)} />
      <span><strong>${title}</strong><br /><span class="quiet small">${what}</span></span>
    </label>
  `;
  return html`
    <${Dialog} title="New policy" onClose=${onClose} onSubmit=${begin}>
      <fieldset class="starts">
        <legend>Begin with</legend>
        ${Object.entries(STARTS).map(([value, { title, what }]) => option(value, title, what))}
        ${policies.length > 0 && option('copy', 'The rules of another policy', 'A copy, which is changed separately from then on.')}
      </fieldset>
      ${
        chosen === 'copy' &&
        html`<div class="field">
          <label for="copied">Which policy</label>
          <select id="copied" onChange=${valueTo(setFrom)}>
            ${policies.map(({ name }) => html`<option key=${name} value=${name} selected=${name === from}>${visibleLine(name)}</option>`)}
          </select>
        </div>`
      }
      <p class="small quiet">Nothing is in force until you save it and put an agent under it.</p>
      <div class="buttons">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="primary" id="begin">Begin</button>
      </div>
    <//>
  `;
}
