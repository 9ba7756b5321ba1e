// Suspends the agent of an inbox entry from within the entry.
/** @typedef {import('/console/inbox/entries.js').Entry} Entry */
import { MoveDialog } from '/console/agents/move-dialog.js';
import { html, useState } from '/console/html.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { visibleLine } from '/console/visible.js';

/**
 * `done()` is called after an attempt.
 *
 * @param {{ entry: Entry, done: () => void }} props
 */
export function Suspend({ entry: { kind, item }, done }) {
  const owner = useOwner();
  const [asking, setAsking] = useState(false);
  if (kind === 'registration') return null;
  const { agent } = item;
  const name = visibleLine(agent.name);
  if (agent.status === 'suspended')
    return html`<p class="suspend small why">This agent is suspended: its calls are refused, an approved one too, until somebody resumes it.</p>`;
  if (!mayChange(owner) || agent.status !== 'active') return null;
  return html`
    <p class="suspend"><button type="button" class="compact danger" onClick=${() => setAsking(true)}>Suspend ${name}…</button></p>
    ${asking && html`<${MoveDialog} agent=${agent} verb="suspend" onClose=${() => setAsking(false)} onMoved=${done} />`}
  `;
}
