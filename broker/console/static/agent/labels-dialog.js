// Edits the labels by which agents are filtered and grouped.
/** @typedef {import('../../answers.ts').WholeAgent} WholeAgent */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Dialog } from '/console/shell/dialog.js';
import { valueTo } from '/console/shell/fields.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

/** @param {{ agent: WholeAgent, onClose: () => void, onDone: () => void }} props */
export function LabelsDialog({ agent, onClose, onDone }) {
  const [text, setText] = useState(agent.labels.join(', '));
  const { busy, problem, run } = useDoing();
  const announce = useAnnounce();
  const name = visibleLine(agent.name);
  const labels = text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
  const save = () =>
    run(async () => {
      await ask('POST', /** @type {const} */ (`/owner/agents/${agent.agent_id}/labels`), { labels });
      announce(`The labels of ${name} are changed.`, 'good');
      onClose();
      onDone();
    });
  return html`<${Dialog} title=${`Labels of ${name}`} onClose=${onClose} onSubmit=${save}>
    <div class="field">
      <label for="labels">Labels, separated by commas</label>
      <input id="labels" value=${text} maxlength="500" autocomplete="off" autocapitalize="none" spellcheck=${false} placeholder="prod, team:billing" aria-describedby="labels-hint" onInput=${valueTo(setText)} />
      <p class="hint" id="labels-hint">At most 10, of letters, digits, spaces and . _ : / -. Agents are found by them, and conditions of policies may read them (<code>'prod' in agent.labels</code>), from its next call on.</p>
    </div>
    <${Problem} problem=${problem} />
    <div class="buttons">
      <button type="button" onClick=${onClose}>Cancel</button>
      <button type="submit" class="primary" id="save-labels" disabled=${busy || text === agent.labels.join(', ')}>Save</button>
    </div>
  <//>`;
}
