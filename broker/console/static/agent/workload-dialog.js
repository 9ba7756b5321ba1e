// Sets the issuer and subject of the tokens that authenticate an agent without a key.
/** @typedef {import('../../answers.ts').WholeAgent} WholeAgent */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Command } from '/console/shell/command.js';
import { Dialog } from '/console/shell/dialog.js';
import { valueTo } from '/console/shell/fields.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

/** @param {{ agent: WholeAgent, onClose: () => void, onDone: () => void }} props */
export function WorkloadDialog({ agent, onClose, onDone }) {
  const { workload } = agent;
  const [issuer, setIssuer] = useState(workload?.issuer ?? '');
  const [subject, setSubject] = useState(workload?.subject ?? '');
  const [jwksUri, setJwksUri] = useState(workload?.jwks_uri ?? '');
  const [audience, setAudience] = useState(/** @type {string | undefined} */ (undefined));
  const { busy, problem, run } = useDoing();
  const announce = useAnnounce();
  const name = visibleLine(agent.name);
  const path = /** @type {const} */ (`/owner/agents/${agent.agent_id}/workload`);
  const save = () =>
    run(async () => {
      const more = jwksUri.trim() === '' ? {} : { jwks_uri: jwksUri.trim() };
      const made = await ask('POST', path, { issuer: issuer.trim(), subject: subject.trim(), ...more });
      setAudience(made.audience);
      onDone();
    });
  const remove = () =>
    run(async () => {
      await ask('DELETE', path);
      announce(`Tokens of the workload are no longer accepted for ${name}.`, 'good');
      onClose();
      onDone();
    });
  if (audience)
    return html`<${Dialog} title=${`The workload of ${name}`} onClose=${onClose}>
      <p>Its tokens have to be issued for this audience, and for no other:</p>
      <${Command} text=${audience} />
      <p class="small quiet">Where it runs, <code>AGENT_BROKER_TOKEN_FILE</code> names the file in which its platform keeps such a token.</p>
      <div class="buttons"><button type="button" class="primary" onClick=${onClose}>Done</button></div>
    <//>`;
  return html`<${Dialog} title=${`The workload of ${name}`} onClose=${onClose} onSubmit=${save}>
    <p>Tokens that its platform issues for it, such as those of a Kubernetes service account, are accepted instead of tokens that it signs itself. Anyone who can issue such tokens can act as the agent.</p>
    <div class="field">
      <label for="issuer">Issuer</label>
      <input id="issuer" type="url" required maxlength="500" value=${issuer} autocomplete="off" spellcheck=${false} placeholder="https://kubernetes.default.svc" onInput=${valueTo(setIssuer)} />
    </div>
    <div class="field">
      <label for="subject">Subject</label>
      <input id="subject" required maxlength="255" value=${subject} autocomplete="off" autocapitalize="none" spellcheck=${false} placeholder="system:serviceaccount:agents:triage" onInput=${valueTo(setSubject)} />
    </div>
    <div class="field">
      <label for="jwks-uri">Address of its keys</label>
      <input id="jwks-uri" type="url" maxlength="500" value=${jwksUri} autocomplete="off" spellcheck=${false} aria-describedby="jwks-hint" onInput=${valueTo(setJwksUri)} />
      <p class="hint" id="jwks-hint">Found by discovery when it is left empty.</p>
    </div>
    <${Problem} problem=${problem} />
    <div class="buttons">
      ${workload && html`<button type="button" class="danger" id="remove-workload" disabled=${busy} onClick=${remove}>Remove</button>`}
      <button type="button" onClick=${onClose}>Cancel</button>
      <button type="submit" class="primary" id="save-workload" disabled=${busy}>Save</button>
    </div>
  <//>`;
}
