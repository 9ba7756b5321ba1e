// The changes of a governance file, in words.
/** @typedef {import('../../answers.ts').GovernancePlan} GovernancePlan */
/** @typedef {GovernancePlan['changes'][number]} Change */
import { html } from '/console/html.js';
import { visibleLine } from '/console/visible.js';

/** @type {Record<Change['action'], { kind: string, words: string }>} */
const ACTIONS = {
  create: { kind: 'good', words: 'New' },
  update: { kind: 'wait', words: 'Changed' },
  delete: { kind: 'bad', words: 'Removed' },
};

/** @type {Record<Change['kind'], string>} */
const KINDS = {
  organisation: 'the settings of',
  owner: 'the owner',
  platform: 'the platform',
  connection: 'the connection',
  channel: 'the notice channel',
  audit_sink: 'the audit sink',
  policy: 'the policy',
  guardrails: 'the guardrails',
  agent: 'the agent',
  key: 'the key of the agent',
  workload: 'the workload of the agent',
  grant: 'the grant',
};

/** Maximum number of changes shown: a file may change thousands. */
const MAX = 200;

/** `3 new, 1 changed, 2 removed`. @param {readonly Change[]} changes */
export const sumOf = (changes) =>
  /** @type {Change['action'][]} */ (['create', 'update', 'delete'])
    .map((action) => ({ action, count: changes.filter((one) => one.action === action).length }))
    .filter(({ count }) => count > 0)
    .map(({ action, count }) => `${count} ${ACTIONS[action].words.toLowerCase()}`)
    .join(', ');

/** @param {{ changes: readonly Change[], id: string }} props */
export function Changes({ changes, id }) {
  return html`
    <ul role="list" class="changes" id=${id}>
      ${changes.slice(0, MAX).map(
        ({ action, kind, name, details }, at) => html`<li key=${at} data-action=${action} data-kind=${kind}>
          <p><span class="badge" data-kind=${ACTIONS[action].kind}>${ACTIONS[action].words}</span> ${KINDS[kind]} ${kind === 'guardrails' ? '' : html`<strong class="theirs">${visibleLine(name)}</strong>`}</p>
          ${details.length > 0 && html`<ul class="small">${details.map((line) => html`<li key=${line} class="theirs">${visibleLine(line)}</li>`)}</ul>`}
        </li>`,
      )}
    </ul>
    ${changes.length > MAX && html`<p class="quiet">And ${changes.length - MAX} more.</p>`}
  `;
}
