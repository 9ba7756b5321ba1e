// Shows the changes before a new version is saved and takes effect.
/** @typedef {import('/console/policy/draft.js').Draft} Draft */
/** @typedef {import('/console/policy/subject.js').Subject} Subject */
/** @typedef {import('/console/html.js').Children} Children */
import { html } from '/console/html.js';
import { DiffView } from '/console/policy/diff-view.js';
import { Dialog } from '/console/shell/dialog.js';
import { Problem } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

/** `tried`: the result of trying these rules, or a button to try them. @param {{ subject: Subject, draft: Draft, busy: boolean, problem: Error | undefined, tried: Children, onClose: () => void, save: () => void }} props */
export function SaveDialog({ subject, draft, busy, problem, tried, onClose, save }) {
  const rules = draft.cards.map(({ rule }) => rule);
  const fresh = subject.version === 0 && subject.kind === 'policy';
  const name = visibleLine(fresh ? draft.name : subject.name);
  return html`
    <${Dialog} title=${fresh ? `Make the policy ${name}?` : `Save ${name}?`} onClose=${onClose} onSubmit=${save}>
      <p>${whom(subject, fresh)}</p>
      <div class="diff-box" role="group" aria-label="What changes" tabindex="0"><${DiffView} before=${fresh ? [] : draft.baseRules} after=${rules} none=${fresh ? 'It has no rules: every call of the agents under it is refused.' : 'The rules are those in force.'} /></div>
      ${tried}
      <${Problem} problem=${problem} />
      <div class="buttons">
        <button type="button" onClick=${onClose}>Back</button>
        <button type="submit" class="primary" id="save-now" disabled=${busy}>${fresh ? 'Make it' : 'Save'}</button>
      </div>
    <//>
  `;
}

/** @param {Subject} subject @param {boolean} fresh */
function whom({ kind, agents }, fresh) {
  if (fresh) return 'No agent is under it yet. You put agents under it afterwards, on its page.';
  if (kind === 'guardrails') return 'In force for every agent, from its next call on.';
  if (agents === 0) return 'No agent is under it, so it decides about nobody yet.';
  return `In force for the ${agents === 1 ? 'agent' : `${agents} agents`} under it, from the next call on.`;
}
