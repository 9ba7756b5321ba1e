// Saying no, with a reason that the agent can act on.
/** @typedef {import('/console/inbox/entries.js').AccessEntry} AccessEntry */
/** @typedef {import('/console/inbox/entries.js').CallEntry} CallEntry */
import { html, useState } from '/console/html.js';
import { oneLine } from '/console/inbox/words.js';
import { Dialog } from '/console/shell/dialog.js';
import { checkedTo, valueTo } from '/console/shell/fields.js';
import { visibleLine } from '/console/visible.js';

/** What the agent reads. */
const REASONS = {
  approval: ['Not now', 'Wrong recipient', 'Too much access: ask for less', 'Ask me first'],
  access: ['Not now', 'Too much access: ask for less', 'Not for this agent', 'Ask me first'],
};

/**
 * `others`: how many more calls of the same agent wait. `onDeny(note, all)`: note is empty without a reason; `all`: they are denied,
 * too.
 *
 * @param {{
 *   entry: CallEntry | AccessEntry, others?: number, onDeny: (note: string, all: boolean) => void, onClose: () => void,
 * }} props
 */
export function Deny({ entry, others = 0, onDeny, onClose }) {
  const [all, setAll] = useState(false);
  const [chosen, setChosen] = useState('');
  const [own, setOwn] = useState('');
  const choose = (/** @type {string} */ reason) => html`
    <label class="chip">
      <input type="radio" name="reason" value=${reason} checked=${chosen === reason} onChange=${() => setChosen(reason)} />
      ${reason || 'No reason'}
    </label>
  `;
  const note = [chosen, own.trim()].filter(Boolean).join('. ');
  return html`
    <${Dialog} title=${entry.kind === 'approval' ? 'Deny this call?' : 'Deny this request?'} onClose=${onClose} onSubmit=${() => onDeny(note, all)}>
      <p class="theirs mono small">${oneLine(entry)}</p>
      <fieldset>
        <legend>What should <span class="theirs">${visibleLine(entry.item.agent.name)}</span> know?</legend>
        <div class="chips">${['', ...REASONS[entry.kind]].map(choose)}</div>
      </fieldset>
      <div class="field">
        <label for="own">In your words <span class="quiet">(optional)</span></label>
        <textarea id="own" rows="2" maxlength="900" value=${own} onInput=${valueTo(setOwn)}></textarea>
        <p class="hint">The agent reads it, and it stays on record.</p>
      </div>
      ${
        others > 0 &&
        html`<label class="check">
          <input type="checkbox" id="deny-all" checked=${all} onChange=${checkedTo(setAll)} />
          Also deny the other ${others === 1 ? 'call' : `${others} calls`} of this agent that ${others === 1 ? 'waits' : 'wait'}
        </label>`
      }
      <div class="buttons">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="danger solid" id="deny">${all ? `Deny all ${others + 1}` : 'Deny'}</button>
      </div>
    <//>
  `;
}
