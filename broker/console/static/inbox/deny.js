// The dialog that denies an access request, with a reason that the agent can act on.
/** @typedef {import('/console/inbox/entries.js').AccessEntry} AccessEntry */
import { html } from '/console/html.js';
import { oneLine } from '/console/inbox/entry-text.js';
import { ReasonFields, useReason } from '/console/request-view/reason.js';
import { Dialog } from '/console/shell/dialog.js';
import { visibleLine } from '/console/visible.js';

/**
 * `onDeny(note)`: the note is empty without a reason.
 *
 * @param {{ entry: AccessEntry, onDeny: (note: string) => void, onClose: () => void }} props
 */
export function Deny({ entry, onDeny, onClose }) {
  const reason = useReason();
  return html`
    <${Dialog} title="Deny this request?" onClose=${onClose} onSubmit=${() => onDeny(reason.note)}>
      <p class="theirs mono small">${oneLine(entry)}</p>
      <${ReasonFields} reason=${reason} whom=${html`<span class="theirs">${visibleLine(entry.item.agent.name)}</span>`} kind="access" />
      <div class="buttons">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="danger solid" id="deny">Deny</button>
      </div>
    <//>
  `;
}
