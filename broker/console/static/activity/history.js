// The steps of a held call: in one line, and as a list.
/** @typedef {import('/console/activity/steps.js').Step} Step */
import { stepBadge, stepInWords } from '/console/activity/steps.js';
import { html } from '/console/html.js';
import { receiptPath } from '/console/receipt/facts.js';
import { Link } from '/console/shell/router.js';
import { exactly } from '/console/shell/time.js';
import { visible } from '/console/visible.js';

/** @typedef {{ steps: readonly Step[], names: ReadonlyMap<string, string> }} Props */

/** `held → approved by ann@acme.example → made: status 201`. @param {Props} props */
export const Trail = ({ steps, names }) =>
  html`<span class="small quiet trail theirs">${steps.map((step) => stepInWords(step, names)).join(' → ')}</span>`;

/** @param {Props} props */
export const History = ({ steps, names }) => html`
  <ol role="list" class="steps">
    ${steps.map(
      (step) => html`<li key=${step.step} data-step=${step.step} data-kind=${stepBadge(step).kind}>
        <span>${stepInWords(step, names)}</span>
        <time class="quiet" datetime=${step.at}>${exactly(step.at)}</time>
        ${step.note && html`<span class="quiet theirs">“${visible(step.note)}”</span>`}
        ${step.receipt_kid && html`<${Link} to=${receiptPath(step.audit_id ?? '')}>Receipt<//>`}
      </li>`,
    )}
  </ol>
`;
