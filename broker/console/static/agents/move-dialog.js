// Asks for confirmation before an agent is suspended, resumed, revoked or deleted.
/** @typedef {import('../../answers.ts').Agent} Agent */
/** @typedef {import('/console/agents/status-labels.js').Verb} Verb */
import { MOVE } from '/console/agents/status-labels.js';
import { asError, ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Dialog } from '/console/shell/dialog.js';
import { valueTo } from '/console/shell/fields.js';
import { visibleLine } from '/console/visible.js';

/** @param {{ agent: Pick<Agent, 'agent_id' | 'name'>, verb: Verb, onClose: () => void, onMoved: () => void }} props */
export function MoveDialog({ agent, verb, onClose, onMoved }) {
  const [reason, setReason] = useState('');
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(/** @type {Error | undefined} */ (undefined));
  const announce = useAnnounce();
  const { title, what, done, kind } = MOVE[verb];
  const name = visibleLine(agent.name);
  const move = async () => {
    if (busy) return;
    setBusy(true);
    setProblem(undefined);
    try {
      await ask('POST', `/owner/agents/${agent.agent_id}/${verb}`, reason.trim() ? { reason: reason.trim() } : {});
      announce(`${name} ${done}`, 'good');
      onClose();
    } catch (error) {
      setProblem(asError(error));
      setBusy(false);
    }
    onMoved();
  };
  return html`
    <${Dialog} title=${`${title} ${name}?`} onClose=${onClose} onSubmit=${move}>
      <p>${what}</p>
      ${
        verb !== 'resume' &&
        html`<div class="field">
          <label for="why">Why <span class="quiet">(optional)</span></label>
          <input id="why" maxlength="500" value=${reason} onInput=${valueTo(setReason)} />
          <p class="hint">The agent reads it.</p>
        </div>`
      }
      ${problem && html`<p class="notice" data-kind="bad" role="alert">${problem.message}</p>`}
      <div class="buttons">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class=${kind === 'danger' ? 'danger solid' : kind} id="move" disabled=${busy}>${title}</button>
      </div>
    <//>
  `;
}
