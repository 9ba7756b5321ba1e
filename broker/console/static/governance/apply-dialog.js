// Confirms a governance file before it is applied, with the names of everything that it removes.
/** @typedef {import('../../answers.ts').GovernancePlan} GovernancePlan */
/** @typedef {import('../../answers.ts').GovernanceApplied} GovernanceApplied */
/** @typedef {import('/console/governance/references.js').Sent} Sent */
import { ask } from '/console/api.js';
import { Changes, sumOf } from '/console/governance/changes.js';
import { FileErrors } from '/console/governance/file-errors.js';
import { html } from '/console/html.js';
import { Dialog } from '/console/shell/dialog.js';
import { useDoing } from '/console/shell/use-doing.js';

/** @param {{ plan: GovernancePlan, sent: Sent, done: (applied: GovernanceApplied) => void, onClose: () => void }} props */
export function ApplyDialog({ plan: { changes, governance_version }, sent, done, onClose }) {
  const { busy, problem, run } = useDoing();
  const removed = changes.filter(({ action }) => action === 'delete');
  const apply = () =>
    run(async () => done(await ask('POST', '/owner/governance/apply', { ...sent, governance_version })));
  return html`<${Dialog} title="Apply this file?" onClose=${onClose} onSubmit=${apply}>
    <p>${sumOf(changes)}: applied together, in force from the next call on. If anything was changed since you looked, nothing is applied.</p>
    ${removed.length > 0 && html`<p>It removes:</p><${Changes} changes=${removed.map((one) => ({ ...one, details: [] }))} id="removed" />`}
    <${FileErrors} problem=${problem} />
    <div class="buttons">
      <button type="button" onClick=${onClose}>Cancel</button>
      <button type="submit" class=${removed.length > 0 ? 'danger solid' : 'primary'} id="apply-now" disabled=${busy}>${busy ? 'Applying…' : 'Apply it'}</button>
    </div>
  <//>`;
}
