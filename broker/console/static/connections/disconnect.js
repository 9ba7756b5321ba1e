// Asks for confirmation before a connection is disconnected.
/** @typedef {import('../../answers.ts').Connection} Connection */
import { asError, ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Dialog } from '/console/shell/dialog.js';
import { visibleLine } from '/console/visible.js';

/** @param {{ connection: Connection, onClose: () => void, onDone: () => void }} props */
export function Disconnect({ connection: { id, label }, onClose, onDone }) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(/** @type {Error | undefined} */ (undefined));
  const announce = useAnnounce();
  const name = visibleLine(label);
  const disconnect = async () => {
    if (busy) return;
    setBusy(true);
    setProblem(undefined);
    try {
      const { revoked, detail } = await ask('POST', `/owner/connections/${id}/oauth/disconnect`, {});
      if (revoked) announce(`“${name}” is disconnected.`, 'good');
      else announce(detail, 'wait');
      onClose();
    } catch (error) {
      setProblem(asError(error));
      setBusy(false);
    }
    onDone();
  };
  return html`<${Dialog} title="Disconnect this?" onClose=${onClose} onSubmit=${disconnect}>
    <p><strong class="theirs">${name}</strong> is no longer used, from the next call on. The broker forgets its tokens and has the
    platform revoke them.</p>
    <p class="quiet small">Grants stay. After it is connected again, the same agents can call.</p>
    ${problem && html`<p class="notice" data-kind="bad" role="alert">${problem.message}</p>`}
    <div class="buttons">
      <button type="button" onClick=${onClose}>Cancel</button>
      <button type="submit" class="danger solid" id="disconnect" disabled=${busy}>Disconnect</button>
    </div>
  <//>`;
}
