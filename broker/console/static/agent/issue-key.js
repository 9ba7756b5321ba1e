/** @typedef {import('../../answers.ts').IssuedStaticKey} IssuedStaticKey */
/** @typedef {import('../../answers.ts').WholeAgent} WholeAgent */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { Command } from '/console/shell/command.js';
import { Dialog } from '/console/shell/dialog.js';
import { valueTo } from '/console/shell/fields.js';
import { exactly } from '/console/shell/time.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { useLoaded } from '/console/shell/use-loaded.js';
import { visibleLine } from '/console/visible.js';

const DAY_S = 24 * 3600;
const LASTS = /** @type {const} */ ([
  [7 * DAY_S, '7 days'],
  [30 * DAY_S, '30 days'],
  [90 * DAY_S, '90 days'],
]);

/** The dialog that issues a static key, which is shown once. @param {{ agent: WholeAgent, onClose: () => void, onDone: () => void }} props */
export function IssueKey({ agent, onClose, onDone }) {
  const connections = useLoaded('/owner/connections', 60_000).answer?.connections ?? [];
  const [label, setLabel] = useState('');
  const [chosen, choose] = useState('');
  const [lasts, setLasts] = useState(String(7 * DAY_S));
  const [issued, setIssued] = useState(/** @type {IssuedStaticKey | undefined} */ (undefined));
  const { busy, problem, run } = useDoing();
  const connection = chosen || connections[0]?.id;
  const issue = () =>
    run(async () => {
      if (!connection) return;
      const body = { label: label.trim(), connection, expires_in_seconds: Number(lasts) };
      const answer = await ask('POST', /** @type {const} */ (`/owner/agents/${agent.agent_id}/static-keys`), body);
      if ('key' in answer) setIssued(answer);
      onDone();
    });
  if (issued)
    return html`<${Dialog} title="The key" onClose=${onClose}>
      <p>It is shown only once. It works until ${exactly(issued.expires_at)}.</p>
      <${Command} text=${issued.key} />
      <p>Configure the client to send it in place of the platform’s key, to this address instead of the platform’s:</p>
      <${Command} text=${issued.url} />
      <div class="buttons"><button type="button" class="primary" id="kept" onClick=${onClose}>Done</button></div>
    <//>`;
  return html`<${Dialog} title=${`A static key of ${visibleLine(agent.name)}`} onClose=${onClose} onSubmit=${issue}>
    <p class="notice" data-kind="wait">Anyone who has this key can act as the agent on this connection until it expires. If the client can sign its requests, use that instead.</p>
    ${connections.length === 0 && html`<p>There is no connection yet.</p>`}
    <div class="field">
      <label for="key-label">What uses it</label>
      <input id="key-label" required maxlength="100" autocomplete="off" placeholder="OpenAI SDK on the build machine" value=${label} onInput=${valueTo(setLabel)} />
    </div>
    <div class="field">
      <label for="key-connection">Connection</label>
      <select id="key-connection" onChange=${valueTo(choose)}>
        ${connections.map(({ id, label: name, platform }) => html`<option key=${id} value=${id} selected=${id === connection}>${visibleLine(`${name} (${platform})`)}</option>`)}
      </select>
    </div>
    <div class="field">
      <label for="key-lasts">For how long</label>
      <select id="key-lasts" onChange=${valueTo(setLasts)}>
        ${LASTS.map(([seconds, words]) => html`<option key=${words} value=${seconds} selected=${String(seconds) === lasts}>${words}</option>`)}
      </select>
    </div>
    <${Problem} problem=${problem} />
    <div class="buttons">
      <button type="button" onClick=${onClose}>Cancel</button>
      <button type="submit" class="primary" id="issue" disabled=${busy || label.trim() === '' || !connection}>Issue</button>
    </div>
  <//>`;
}
