// Turning away who asks to become an agent.
/** @typedef {import('/console/inbox/entries.js').RegistrationEntry} RegistrationEntry */
import { html } from '/console/html.js';
import { oneLine } from '/console/inbox/words.js';
import { Dialog } from '/console/shell/dialog.js';

/**
 * As Deny, without a reason: there is nobody yet who would read it.
 *
 * @param {{ entry: RegistrationEntry, onDeny: () => void, onClose: () => void }} props
 */
export const Reject = ({ entry, onDeny, onClose }) => html`
  <${Dialog} title="Reject this agent?" onClose=${onClose} onSubmit=${() => onDeny()}>
    <p class="theirs mono small">${oneLine(entry)}</p>
    <p class="quiet small">It never gets a key. It is told that it was rejected, and may ask again.</p>
    <div class="buttons">
      <button type="button" onClick=${onClose}>Cancel</button>
      <button type="submit" class="danger solid" id="deny" autofocus>Reject</button>
    </div>
  <//>
`;
