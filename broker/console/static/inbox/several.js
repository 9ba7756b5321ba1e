// Deciding on several calls: what is selected stands there once more, one by one, before anything is decided.
/** @typedef {import('/console/inbox/entries.js').CallEntry} CallEntry */
import { html, useState } from '/console/html.js';
import { sumsInWords } from '/console/inbox/amounts.js';
import { SeveralEntry } from '/console/inbox/several-entry.js';
import { ReasonFields, useReason } from '/console/request-view/reason.js';
import { Dialog } from '/console/shell/dialog.js';

const calls = (/** @type {number} */ count) => (count === 1 ? '1 call' : `${count} calls`);

/**
 * `entries`: as they were when it was asked for; what changes meanwhile is not decided. `onDecide(note)`: note is empty without one.
 *
 * @param {{
 *   what: 'approve' | 'deny', entries: readonly CallEntry[], onDecide: (note: string) => void, onClose: () => void,
 * }} props
 */
export function Several({ what, entries: given, onDecide, onClose }) {
  const [entries] = useState(given);
  const reason = useReason();
  const sums = sumsInWords(entries);
  const denies = what === 'deny';
  return html`
    <${Dialog} title=${`${denies ? 'Deny' : 'Approve'} ${calls(entries.length)}?`} onClose=${onClose} onSubmit=${() => onDecide(denies ? reason.note : '')}>
      <ul role="list" class="several small" tabindex="0" aria-label="What is decided">
        ${entries.map((entry) => html`<${SeveralEntry} key=${entry.key} entry=${entry} />`)}
      </ul>
      ${sums && html`<p class="sums">${sums}</p>`}
      ${denies && html`<${ReasonFields} reason=${reason} whom="the agents" />`}
      <p class="quiet small">${denies ? 'None of them is ever made.' : `Each is made at once, exactly as it was held, and at most once. You see what each does; open it to see all of its request.`}</p>
      <div class="buttons">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class=${denies ? 'danger solid' : 'primary'} id=${denies ? 'deny' : 'approve'} autofocus=${!denies}>
          ${denies ? 'Deny' : 'Approve'} ${entries.length}
        </button>
      </div>
    <//>
  `;
}
