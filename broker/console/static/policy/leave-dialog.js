// Asks what to do with unsaved changes before the page is left.
import { html } from '/console/html.js';
import { Dialog } from '/console/shell/dialog.js';

/** @param {{ stay: () => void, keep: () => void, drop: () => void }} props */
export const LeaveDialog = ({ stay, keep, drop }) => html`
  <${Dialog} title="Leave without saving?" onClose=${stay} onSubmit=${keep}>
    <p>Your changes are not in force. They can stay in this tab, until you come back or close it.</p>
    <div class="buttons">
      <button type="button" id="stay" onClick=${stay}>Stay</button>
      <button type="button" class="danger" id="drop-draft" onClick=${drop}>Leave and drop them</button>
      <button type="submit" class="primary" id="keep-draft">Leave and keep them</button>
    </div>
  <//>
`;
