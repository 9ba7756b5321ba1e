/** @typedef {import('/console/activity/steps.js').Step} Step */
/** @typedef {import('../../answers.ts').AuditRow} AuditRow */
import { eventText } from '/console/activity/event-text.js';
import { actorOf, describeReason, formatCall, HOW, requesterOf } from '/console/activity/row-labels.js';
import { describeStep, outcomeOf, stepBadge } from '/console/activity/steps.js';
import { html, useState } from '/console/html.js';
import { receiptPath } from '/console/receipt/facts.js';
import { Sentence } from '/console/request-view/sentence.js';
import { AgentName } from '/console/shell/agent-name.js';
import { openTo } from '/console/shell/fields.js';
import { Link } from '/console/shell/router.js';
import { Ago, exactly } from '/console/shell/time.js';
import { visible, visibleLine } from '/console/visible.js';

/**
 * One audit row, which expands to its details. `names`: names of agents and owners by id, when loaded.
 *
 * @param {{ row: AuditRow, names: ReadonlyMap<string, string> }} props
 */
export function ActivityRow({ row, names }) {
  const [open, setOpen] = useState(false);
  const { kind, words } = outcomeOf(row);
  return html`
    <li class="row entry" data-row=${row.id} data-result=${row.result ?? ''}>
      <details onToggle=${openTo(setOpen)}>
        <summary>
          <span class="badge" data-kind=${kind}>${words}</span>
          <span class="line theirs"><${Line} row=${row} names=${names} /></span>
          <span class="small quiet when"><${Ago} at=${row.created_at} /></span>
          ${row.history && row.history.length > 1 && html`<${Trail} steps=${row.history} names=${names} />`}
        </summary>
        ${open && html`<${Details} row=${row} names=${names} />`}
      </details>
    </li>
  `;
}

/** @param {{ row: AuditRow, names: ReadonlyMap<string, string> }} props */
function Line({ row, names }) {
  // A decision on a call is shown as part of the call.
  const isEvent = row.kind === 'event' && !row.history;
  const who = row.agent_public_id && (names.get(row.agent_public_id) ?? row.agent_public_id);
  const agent = who && html`<strong>${visibleLine(who)}</strong> `;
  const actor = isEvent && requesterOf(row.flags, names);
  const by = actor && actor !== who ? html` <span class="quiet">by ${actor}</span>` : '';
  if (isEvent && !row.method)
    return html`${agent}${eventText(row)}${row.platform_name && ` · ${visibleLine(row.platform_name)}`}${by}`;
  const platform = row.platform_name && html`<span class="quiet">on ${visibleLine(row.platform_name)}</span>`;
  if (!row.sentence) return html`${agent}<code>${visibleLine(formatCall(row))}</code> ${platform}${by}`;
  return html`${agent}${agent && 'asked to '}<${Sentence} sentence=${row.sentence} /> ${platform}${by}`;
}

/** @param {{ row: AuditRow, names: ReadonlyMap<string, string> }} props */
function Details({ row, names }) {
  const actor = actorOf(row, names);
  const facts = [
    ['Why', row.kind === 'action' && html`${describeReason(row, actor)} <code class="quiet">${row.reason}</code>`],
    [
      'Agent',
      row.agent_public_id &&
        html`<${AgentName} agent=${{ agent_id: row.agent_public_id, name: names.get(row.agent_public_id) ?? row.agent_public_id }} />`,
    ],
    ['What', row.kind === 'event' && html`<code>${row.reason}</code>`],
    ['By', actor],
    ['History', row.history && html`<${History} steps=${row.history} names=${names} />`],
    ['Changes', changesOf(row)],
    ['Standing approval', row.standing && standingOf(row.standing)],
    ['Detail', row.detail && visibleLine(row.detail)],
    ['Call', row.method && html`<code>${visibleLine(formatCall(row))}</code>`],
    ['Platform', row.platform_id && html`<code>${visibleLine(row.platform_id)}</code>`],
    ['Scope', row.scope && html`<code>${visibleLine(row.scope)}</code>`],
    ['Rules', rulesOf(row)],
    ['Pushed', pushedRefs(row)],
    ['Not allowed', row.violating && row.violating.length > 0 && row.violating.map(visibleLine).join(', ')],
    ['Platform answered', row.upstream_status && answerOf(row)],
    ['The agent said', row.agent_reason && html`“${visibleLine(row.agent_reason)}”`],
    ['Held call', row.approval_id && html`<a href=${`/approve/${row.approval_id}`}>The request and its outcome</a>`],
    ['When', html`<time datetime=${row.created_at}>${exactly(row.created_at)}</time>`],
    ['Audit id', html`<code>${row.id}</code>`],
    [
      'Receipt',
      row.receipt_kid &&
        html`<${Link} to=${receiptPath(row.id)}>Read and verify<//> <span class="quiet">signed with key <code>${row.receipt_kid}</code></span>`,
    ],
  ];
  return html`
    <dl class="facts small">
      ${facts.map(([title, value]) => value && html`<dt>${title}</dt><dd class="theirs">${value}</dd>`)}
    </dl>
  `;
}

/** @param {NonNullable<AuditRow['standing']>} standing */
const standingOf = ({ approval_id, decided_by_email, how, created_at }) =>
  html`given by ${visibleLine(decided_by_email ?? 'a former owner')} ${HOW[how]}, <time datetime=${created_at}>${exactly(created_at)}</time>,
    with <a href=${`/approve/${approval_id}`}>this request</a>`;

/** @param {AuditRow} row */
const answerOf = ({ upstream_status: status, flags }) => {
  const absent = flags?.push_report && ', without a report on each ref';
  return `${status}${flags?.failed === true ? ', with an error in its body' : ''}${absent ?? ''}`;
};

/** @typedef {{ changes?: string[], more?: number, adopted?: number }} Applied */

/**
 * Returns the changes that a governance file made, one line each.
 *
 * @param {AuditRow} row
 */
function changesOf({ flags }) {
  const { changes, more = 0, adopted = 0 } = /** @type {Applied} */ (flags?.change ?? {});
  if (!Array.isArray(changes)) return undefined;
  const [added, taken] = ['create', 'delete'].map(
    (verb) => changes.filter((line) => line.startsWith(`${verb} `)).length,
  );
  return html`<p class="quiet">${changes.length + more} in all${added ? `, ${added} created` : ''}${taken ? `, ${taken} deleted` : ''}${more ? ` (of the first ${changes.length})` : ''}${adopted ? `; ${adopted} adopted` : ''}</p>
    <ul role="list" class="diff">${changes.map((line) => html`<li data-verb=${line.split(' ', 1)[0]}><code>${visibleLine(line)}</code></li>`)}</ul>
    ${more > 0 && html`<p class="quiet">and ${more} more, which are not recorded individually</p>`}`;
}

/** @typedef {{ ref: string, action: string }} PushedRef */

/**
 * Returns the refs that a push asked to change, whether it was allowed, and which of them the code host refused.
 *
 * @param {AuditRow} row
 */
function pushedRefs({ flags }) {
  const refs = /** @type {PushedRef[]} */ (flags?.pushed_refs ?? []);
  const refused = /** @type {string[]} */ (flags?.refused_refs ?? []);
  if (refs.length === 0) return undefined;
  return refs.map(
    ({ ref, action }) =>
      html`<div><span class="quiet">${action}</span> <code>${visibleLine(ref)}</code>${refused.includes(ref) && ' refused by the platform'}</div>`,
  );
}

/** @param {AuditRow} row */
function rulesOf({ rules }) {
  if (rules.length === 0) return undefined;
  return rules.map(
    ({ source, name, says, effect, after }) =>
      html`<div>${source} ${visibleLine(says ?? name)} <span class="quiet">${effect.replaceAll('_', ' ')}</span>${after && html` <${Link} to=${`/console/activity?words=${encodeURIComponent(after)}`}>after another call<//>`}</div>`,
  );
}

// The steps of a held call: in one line, and as a list.
/** @typedef {{ steps: readonly Step[], names: ReadonlyMap<string, string> }} Props */

/** `held → approved by ann@acme.example → made: status 201`. @param {Props} props */
const Trail = ({ steps, names }) =>
  html`<span class="small quiet trail theirs">${steps.map((step) => describeStep(step, names)).join(' → ')}</span>`;

/** @param {Props} props */
const History = ({ steps, names }) => html`
  <ol role="list" class="steps">
    ${steps.map(
      (step) => html`<li key=${step.step} data-step=${step.step} data-kind=${stepBadge(step).kind}>
        <span>${describeStep(step, names)}</span>
        <time class="quiet" datetime=${step.at}>${exactly(step.at)}</time>
        ${step.note && html`<span class="quiet theirs">“${visible(step.note)}”</span>`}
        ${step.receipt_kid && html`<${Link} to=${receiptPath(step.audit_id ?? '')}>Receipt<//>`}
      </li>`,
    )}
  </ol>
`;
