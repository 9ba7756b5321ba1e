// Asks for confirmation before an agent is suspended, resumed, revoked or deleted.
/** @typedef {import('../../answers.ts').Agent} Agent */
/** @typedef {import('/console/agents/status-labels.js').Verb} Verb */
import { MOVE } from '/console/agents/status-labels.js';
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { valueTo } from '/console/shell/fields.js';
import { Question } from '/console/shell/question.js';
import { visibleLine } from '/console/visible.js';

/** @param {{ agent: Pick<Agent, 'agent_id' | 'name'>, verb: Verb, onClose: () => void, onMoved: () => void }} props */
export function MoveDialog({ agent, verb, onClose, onMoved }) {
  const [reason, setReason] = useState('');
  const { title, what, done, kind } = MOVE[verb];
  const name = visibleLine(agent.name);
  const move = async () => {
    await ask('POST', `/owner/agents/${agent.agent_id}/${verb}`, reason.trim() ? { reason: reason.trim() } : {});
    return `${name} ${done}`;
  };
  return html`
    <${Question} title=${`${title} ${name}?`} verb=${title} kind=${kind === 'danger' ? 'danger solid' : kind} id="move" work=${move} onClose=${onClose} onDone=${onMoved}>
      <p>${what}</p>
      ${
        verb !== 'resume' &&
        html`<div class="field">
          <label for="why">Why <span class="quiet">(optional)</span></label>
          <input id="why" maxlength="500" value=${reason} onInput=${valueTo(setReason)} />
          <p class="hint">The agent reads it.</p>
        </div>`
      }
    <//>
  `;
}
