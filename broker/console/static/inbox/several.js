// The dialog that decides several calls: it lists each selected call before anything is decided.
/** @typedef {import('/console/inbox/entries.js').CallEntry} CallEntry */
import { html, useState } from '/console/html.js';
import { sumsInWords } from '/console/inbox/amounts.js';
import { SeveralEntry } from '/console/inbox/several-entry.js';
import { useUnopened } from '/console/inbox/use-unopened.js';
import { ReasonFields, useReason } from '/console/request-view/reason.js';
import { Dialog } from '/console/shell/dialog.js';

const calls = (/** @type {number} */ count) => (count === 1 ? '1 call' : `${count} calls`);

/**
 * `entries`: as they were when the dialog opened; a request that changes later is not decided. `onDecide(note)`: the note is empty when none was
 * written.
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
  const { unread, closed, seen } = useUnopened(entries, !denies);
  const lacking =
    unread > 0
      ? `Reading the requests: ${unread} left.`
      : closed.size > 0
        ? `${closed.size === 1 ? 'One of them has' : `${closed.size} of them have`} folded parts, or something odd: open ${closed.size === 1 ? 'it' : 'each'} and see all of it, or approve without ${closed.size === 1 ? 'it' : 'them'}.`
        : undefined;
  return html`
    <${Dialog} title=${`${denies ? 'Deny' : 'Approve'} ${calls(entries.length)}?`} onClose=${onClose} onSubmit=${() => !lacking && onDecide(denies ? reason.note : '')}>
      <ul role="list" class="several small" tabindex="0" aria-label="What is decided">
        ${entries.map((entry) => html`<${SeveralEntry} key=${entry.key} entry=${entry} closed=${closed.has(entry.key)} seen=${(/** @type {boolean} */ all) => seen(entry.key, all)} />`)}
      </ul>
      ${sums && html`<p class="sums">${sums}</p>`}
      ${denies && html`<${ReasonFields} reason=${reason} whom="the agents" />`}
      <p class="quiet small">${denies ? 'None of them is ever made.' : `Each is made immediately, exactly as it was held, and at most once. You see what each does; open it to see all of its request.`}</p>
      <p class="said small" id="lacking" role="status">${lacking}</p>
      <div class="buttons">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class=${denies ? 'danger solid' : 'primary'} id=${denies ? 'deny' : 'approve'} autofocus=${!denies} aria-disabled=${Boolean(lacking)}>
          ${denies ? 'Deny' : 'Approve'} ${entries.length}
        </button>
      </div>
    <//>
  `;
}
