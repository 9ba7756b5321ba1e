/** @typedef {import('../../answers.ts').StaticKey} StaticKey */
/** @typedef {import('../../answers.ts').WholeAgent} WholeAgent */
import { ask } from '/console/api.js';
import { html } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Dialog } from '/console/shell/dialog.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

/** The dialog that revokes a static key. @param {{ agent: WholeAgent, one: StaticKey, onClose: () => void, onDone: () => void }} props */
export function EndKey({ agent, one, onClose, onDone }) {
  const { busy, problem, run } = useDoing();
  const announce = useAnnounce();
  const label = visibleLine(one.label);
  const end = () =>
    run(async () => {
      await ask('DELETE', /** @type {const} */ (`/owner/agents/${agent.agent_id}/static-keys/${one.id}`));
      announce(`The key ${label} is revoked.`, 'good');
      onClose();
      onDone();
    });
  return html`<${Dialog} title=${`Revoke the key ${label}?`} onClose=${onClose} onSubmit=${end}>
    <p>Requests with this key are refused permanently, from the next one on. The agent and its other keys stay.</p>
    <${Problem} problem=${problem} />
    <div class="buttons">
      <button type="button" onClick=${onClose}>Cancel</button>
      <button type="submit" class="danger solid" id="end-key" disabled=${busy}>Revoke</button>
    </div>
  <//>`;
}
