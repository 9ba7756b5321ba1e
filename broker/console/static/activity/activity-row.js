/** @typedef {import('../../answers.ts').AuditRow} AuditRow */
import { actorOf, deedInWords, reasonInWords, resultOf, whoOf } from '/console/activity/words.js';
import { html, useState } from '/console/html.js';
import { Sentence } from '/console/request-view/sentence.js';
import { openTo } from '/console/shell/fields.js';
import { Ago, exactly } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

/**
 * One line on record; it opens to what is known of it. `names`: of agents and owners by id, as long as there
 * are any.
 *
 * @param {{ row: AuditRow, names: ReadonlyMap<string, string> }} props
 */
export function ActivityRow({ row, names }) {
  const [open, setOpen] = useState(false);
  const { kind, words } = resultOf(row);
  return html`
    <li class="row entry" data-row=${row.id} data-result=${row.result ?? ''}>
      <details onToggle=${openTo(setOpen)}>
        <summary>
          <span class="badge" data-kind=${kind}>${words}</span>
          <span class="line theirs"><${Line} row=${row} names=${names} /></span>
          <span class="small quiet when"><${Ago} at=${row.created_at} /></span>
        </summary>
        ${open && html`<${Details} row=${row} names=${names} />`}
      </details>
    </li>
  `;
}

/** @param {{ row: AuditRow, names: ReadonlyMap<string, string> }} props */
function Line({ row, names }) {
  const who = row.agent_public_id && (names.get(row.agent_public_id) ?? row.agent_public_id);
  const agent = who && html`<strong>${visibleLine(who)}</strong> `;
  const actor = row.kind === 'event' && whoOf(row.flags, names);
  const by = actor && actor !== who ? html` <span class="quiet">by ${actor}</span>` : '';
  if (row.kind === 'event' && !row.method)
    return html`${agent}${deedInWords(row.reason)}${row.platform_id && ` · ${visibleLine(row.platform_id)}`}${by}`;
  const platform = html`<span class="quiet">on ${visibleLine(row.platform_id ?? '')}</span>`;
  if (!row.sentence)
    return html`${agent}<code>${visibleLine(`${row.method} ${row.path ?? ''}`)}</code> ${platform}${by}`;
  return html`${agent}${agent && 'asked to '}<${Sentence} sentence=${row.sentence} /> ${platform}${by}`;
}

/** @param {{ row: AuditRow, names: ReadonlyMap<string, string> }} props */
function Details({ row, names }) {
  const actor = actorOf(row, names);
  const facts = [
    ['Why', row.kind === 'action' && html`${reasonInWords(row, actor)} <code class="quiet">${row.reason}</code>`],
    ['What', row.kind === 'event' && html`<code>${row.reason}</code>`],
    ['By', actor],
    ['Detail', row.detail && visibleLine(row.detail)],
    ['Call', row.method && html`<code>${visibleLine(`${row.method} ${row.path ?? ''}`)}</code>`],
    ['Scope', row.scope && html`<code>${visibleLine(row.scope)}</code>`],
    ['Rules', rulesOf(row)],
    ['Pushed', pushedRefs(row)],
    ['Not allowed', row.violating && row.violating.length > 0 && row.violating.map(visibleLine).join(', ')],
    ['Platform answered', row.upstream_status && answerOf(row)],
    ['The agent said', row.agent_reason && html`“${visibleLine(row.agent_reason)}”`],
    [
      'Held call',
      row.approval_id && html`<a href=${`/approve/${row.approval_id}`}>The request, and what became of it</a>`,
    ],
    ['When', exactly(row.created_at)],
    ['Audit id', html`<code>${row.id}</code>`],
    [
      'Receipt',
      row.receipt_kid &&
        html`<a href=${`/v1/audit/${row.id}/receipt`} target="_blank" rel="noopener">Receipt</a> <span class="quiet">signed with key <code>${row.receipt_kid}</code>, not verified by this page</span>`,
    ],
  ];
  return html`
    <dl class="facts small">
      ${facts.map(([title, value]) => value && html`<dt>${title}</dt><dd class="theirs">${value}</dd>`)}
    </dl>
  `;
}

/** @param {AuditRow} row */
const answerOf = ({ upstream_status: status, flags }) =>
  flags?.failed === true ? `${status}, with an error in its body` : status;

/** @typedef {{ ref: string, action: string }} PushedRef */

/**
 * What a push asked to change, allowed or not.
 *
 * @param {AuditRow} row
 */
function pushedRefs({ flags }) {
  const refs = /** @type {PushedRef[]} */ (flags?.pushed_refs ?? []);
  if (refs.length === 0) return undefined;
  return refs.map(
    ({ ref, action }) => html`<div><span class="quiet">${action}</span> <code>${visibleLine(ref)}</code></div>`,
  );
}

/** @param {AuditRow} row */
function rulesOf({ rules }) {
  if (rules.length === 0) return undefined;
  return rules.map(
    ({ source, name, says, effect }) =>
      html`<div>${source} ${visibleLine(says ?? name)} <span class="quiet">${effect.replaceAll('_', ' ')}</span></div>`,
  );
}
