// The dialog that rejects a registration.
/** @typedef {import('/console/inbox/entries.js').RegistrationEntry} RegistrationEntry */
import { html, useState } from '/console/html.js';
import { oneLine } from '/console/inbox/entry-text.js';
import { Dialog } from '/console/shell/dialog.js';
import { checkedTo } from '/console/shell/fields.js';
import { visibleLine } from '/console/visible.js';

/**
 * As Deny, without a reason: no agent exists yet that would read it. `others`: how many more registrations wait from the same network.
 *
 * @param {{
 *   entry: RegistrationEntry, others: number, onDeny: (note: string | undefined, all: boolean) => void, onClose: () => void,
 * }} props
 */
export function Reject({ entry, others, onDeny, onClose }) {
  const [all, setAll] = useState(false);
  return html`
    <${Dialog} title="Reject this agent?" onClose=${onClose} onSubmit=${() => onDeny(undefined, all)}>
      <p class="theirs mono small">${oneLine(entry)}</p>
      ${
        others > 0 &&
        html`<label class="check">
          <input type="checkbox" id="deny-all" checked=${all} onChange=${checkedTo(setAll)} />
          Also reject the other ${others === 1 ? 'one' : others} from <code class="theirs">${visibleLine(entry.item.network)}</code> that ${others === 1 ? 'waits' : 'wait'}
        </label>`
      }
      <p class="quiet small">It never gets a key. It learns that it was rejected, and may register again; after ten rejections only a day later.</p>
      <div class="buttons">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="danger solid" id="deny" autofocus>${all ? `Reject all ${others + 1}` : 'Reject'}</button>
      </div>
    <//>
  `;
}
