// Edits the labels by which agents are filtered and grouped.
/** @typedef {import('../../answers.ts').WholeAgent} WholeAgent */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { valueTo } from '/console/shell/fields.js';
import { Question } from '/console/shell/question.js';
import { visibleLine } from '/console/visible.js';

/** @param {{ agent: WholeAgent, onClose: () => void, onDone: () => void }} props */
export function LabelsDialog({ agent, onClose, onDone }) {
  const [text, setText] = useState(agent.labels.join(', '));
  const name = visibleLine(agent.name);
  const labels = text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
  const save = async () => {
    await ask('POST', /** @type {const} */ (`/owner/agents/${agent.agent_id}/labels`), { labels });
    onDone();
    return `The labels of ${name} are changed.`;
  };
  return html`<${Question} title=${`Labels of ${name}`} verb="Save" id="save-labels" disabled=${text === agent.labels.join(', ')} work=${save} onClose=${onClose}>
    <div class="field">
      <label for="labels">Labels, separated by commas</label>
      <input id="labels" value=${text} maxlength="500" autocomplete="off" autocapitalize="none" spellcheck=${false} placeholder="prod, team:billing" aria-describedby="labels-hint" onInput=${valueTo(setText)} />
      <p class="hint" id="labels-hint">At most 10, of letters, digits, spaces and . _ : / -. Agents are found by them, and conditions of policies may read them (<code>'prod' in agent.labels</code>), from its next call on.</p>
    </div>
  <//>`;
}
