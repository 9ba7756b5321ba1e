// The dialog that stops agents and resumes them, and says what each does.
/** @typedef {import('../../answers.ts').Organisation} Organisation */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Dialog } from '/console/shell/dialog.js';
import { valueTo } from '/console/shell/fields.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { Platforms } from '/console/stop/platforms.js';
import { visibleLine } from '/console/visible.js';

/** @typedef {NonNullable<Organisation['agents_stopped']>} AgentsStopped */

/** `admins`: e-mail addresses of the admins. @param {{ stopped: AgentsStopped | null, admins: readonly string[], onClose: () => void, onDone: () => void }} props */
export function StopDialog({ stopped, admins, onClose, onDone }) {
  const owner = useOwner();
  const announce = useAnnounce();
  const { busy, problem, run } = useDoing();
  const [reason, setReason] = useState('');
  if (!mayChange(owner))
    return html`<${Dialog} title="Stop agents or a platform" onClose=${onClose}>
      <p>Your role is ${owner.role}: only an admin can stop all agents or a platform, and resume them.</p>
      ${admins.length > 0 && html`<p>Ask ${admins.map((email, at) => html`${at > 0 && (at === admins.length - 1 ? ' or ' : ', ')}<strong class="theirs">${visibleLine(email)}</strong>`)}.</p>`}
      <div class="buttons"><button type="button" onClick=${onClose}>Close</button></div>
    <//>`;
  const words = reason.trim() ? { reason: reason.trim() } : {};
  const change = () =>
    run(async () => {
      if (stopped) await ask('POST', '/owner/agents/resume-all', words);
      else await ask('POST', '/owner/agents/suspend-all', words);
      announce(stopped ? 'All agents may call again.' : 'All agents are stopped.', 'good');
      onClose();
      onDone();
    });
  return html`<${Dialog} title=${stopped ? 'All agents are stopped' : 'Stop agents or a platform'} onClose=${onClose} onSubmit=${change}>
    ${stopped ? html`<${Resuming} />` : html`<${Stopping} />`}
    <div class="field">
      <label for="stop-why">Why <span class="quiet">(optional)</span></label>
      <input id="stop-why" maxlength="500" autocomplete="off" value=${reason} onInput=${valueTo(setReason)} />
      <p class="hint">${stopped ? 'It stays on record.' : 'The agents read it, and it stays on record.'}</p>
    </div>
    <${Problem} problem=${problem} />
    <button type="submit" id="stop-all" class=${stopped ? 'primary' : 'danger solid'} disabled=${busy}>${stopped ? 'Resume all agents' : 'Stop all agents'}</button>
    <${Platforms} />
    <div class="buttons"><button type="button" onClick=${onClose}>Close</button></div>
  <//>`;
}

const Stopping = () => html`
  <ul class="says">
    <li>Every call of every agent is refused from the next one on, including agents that are added later.</li>
    <li>Answers that agents are reading are cut within two seconds. What was already sent to a platform is not undone.</li>
    <li>Held calls stay pending; one that is approved meanwhile is not made.</li>
    <li>When you resume, agents that were suspended individually stay suspended.</li>
  </ul>
`;

const Resuming = () => html`
  <ul class="says">
    <li>Agents may call again immediately, with everything that they are granted.</li>
    <li>Agents that were suspended or revoked individually stay so.</li>
  </ul>
`;
