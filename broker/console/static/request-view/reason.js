// The fields for the reason of a denial, which the agent reads: a prepared reason, the owner's own words, or both.
import { html, useState } from '/console/html.js';
import { valueTo } from '/console/shell/fields.js';

/** Prepared reasons. */
const REASONS = {
  approval: ['Not now', 'Wrong recipient', 'Too much access: ask for less', 'Ask me first'],
  access: ['Not now', 'Too much access: ask for less', 'Not for this agent', 'Ask me first'],
};

/** @typedef {ReturnType<typeof useReason>} Reason */

/** `note`: the chosen and written reason so far; may be empty. `written`: the words to begin with. */
export function useReason(written = '') {
  const [chosen, choose] = useState('');
  const [own, write] = useState(written);
  return { chosen, choose, own, write, note: [chosen, own.trim()].filter(Boolean).join('. ') };
}

/**
 * `whom`: who reads the reason.
 *
 * @param {{ reason: Reason, whom: import('/console/html.js').Children, kind?: keyof typeof REASONS }} props
 */
export function ReasonFields({ reason, whom, kind = 'approval' }) {
  const { chosen, choose, own, write } = reason;
  const chip = (/** @type {string} */ ready) => html`
    <label class="chip">
      <input type="radio" name="reason" value=${ready} checked=${chosen === ready} onChange=${() => choose(ready)} />
      ${ready || 'No reason'}
    </label>
  `;
  return html`
    <fieldset>
      <legend>What should ${whom} know?</legend>
      <div class="chips">${['', ...REASONS[kind]].map(chip)}</div>
    </fieldset>
    <div class="field">
      <label for="own">In your words <span class="quiet">(optional)</span></label>
      <textarea id="own" rows="2" maxlength="900" value=${own} onInput=${valueTo(write)}></textarea>
      <p class="hint">The agent reads it, and it stays on record.</p>
    </div>
  `;
}
