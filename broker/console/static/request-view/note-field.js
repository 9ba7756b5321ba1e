// The field for the owner's note to the agent, beside the decision that it is sent with.
import { html } from '/console/html.js';
import { valueTo } from '/console/shell/fields.js';

/** @param {{ id?: string, note: string, setNote: (note: string) => void, max?: number }} props */
export const NoteField = ({ id = 'note', note, setNote, max = 1000 }) => html`<div class="field note">
  <label for=${id} class="unseen">Note for the agent (optional)</label>
  <textarea id=${id} rows="1" maxlength=${max} placeholder="Note for the agent (optional)" value=${note} onInput=${valueTo(setNote)}></textarea>
</div>`;
