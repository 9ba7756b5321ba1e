/** @typedef {import('../../answers.ts').AuditRow} AuditRow */
import { deedInWords, reasonInWords, resultOf } from '/console/activity/words.js';
import { html, useState } from '/console/html.js';
import { openTo } from '/console/shell/fields.js';
import { Ago } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

/**
 * One line on record; it opens to what is known of it. `name`: of the agent, while there is one. `owners`: addresses by id.
 *
 * @param {{ row: AuditRow, name: string | undefined, owners: ReadonlyMap<string, string> }} props
 */
export function ActivityRow({ row, name, owners }) {
  const [open, setOpen] = useState(false);
  const { kind, words } = resultOf(row);
  return html`
    <li class="row entry" data-row=${row.id} data-result=${row.result ?? ''}>
      <details onToggle=${openTo(setOpen)}>
        <summary>
          <span class="badge" data-kind=${kind}>${words}</span>
          <span class="line theirs"><${Line} row=${row} name=${name} /></span>
          <span class="small quiet when"><${Ago} at=${row.created_at} /></span>
        </summary>
        ${open && html`<${Details} row=${row} owners=${owners} />`}
      </details>
    </li>
  `;
}

/** @param {{ row: AuditRow, name: string | undefined }} props */
function Line({ row, name }) {
  const who = name ?? row.agent_public_id;
  const agent = who && html`<strong>${visibleLine(who)}</strong> `;
  if (row.kind === 'event' && !row.method) return html`${agent}${deedInWords(row.reason)}`;
  return html`${agent}<code>${visibleLine(`${row.method} ${row.path ?? ''}`)}</code> on ${visibleLine(row.platform_id ?? '')}`;
}

/** @param {{ row: AuditRow, owners: ReadonlyMap<string, string> }} props */
function Details({ row, owners }) {
  const facts = [
    ['Why', row.kind === 'action' && html`${reasonInWords(row.reason)} <code class="quiet">${row.reason}</code>`],
    ['What', row.kind === 'event' && html`<code>${row.reason}</code>`],
    ['By', byWhom(row, owners)],
    ['In words', row.detail && visibleLine(row.detail)],
    ['Scope', row.scope && html`<code>${visibleLine(row.scope)}</code>`],
    ['Rules', rulesOf(row)],
    ['Pushed', pushedRefs(row)],
    ['Not allowed', row.violating && row.violating.length > 0 && row.violating.map(visibleLine).join(', ')],
    ['Platform answered', row.upstream_status],
    ['The agent said', row.agent_reason && html`“${visibleLine(row.agent_reason)}”`],
    ['When', new Date(row.created_at).toLocaleString()],
    ['On record as', html`<code>${row.id}</code>`],
    [
      'Receipt',
      row.receipt_kid &&
        html`<a href=${`/v1/audit/${row.id}/receipt`} target="_blank" rel="noopener">Signed receipt</a>`,
    ],
  ];
  return html`
    <dl class="facts small">
      ${facts.map(([title, value]) => value && html`<dt>${title}</dt><dd class="theirs">${value}</dd>`)}
    </dl>
  `;
}

/**
 * Which owner did or decided it, and how.
 *
 * @param {AuditRow} row
 * @param {ReadonlyMap<string, string>} owners
 */
function byWhom({ flags }, owners) {
  const { by, decided_by, how } = /** @type {Deciding} */ (flags?.change ?? flags?.approval ?? {});
  const who = by ?? decided_by;
  if (how === 'broker') return 'the broker, by a rule';
  return who && `${visibleLine(owners.get(who) ?? who)}${how ? `, ${HOW[how] ?? how}` : ''}`;
}

/** What the broker notes of a change and of a decision. @typedef {{ by?: string, decided_by?: string, how?: string }} Deciding */

/** @type {Partial<Record<string, string>>} */
const HOW = { console: 'in the console', api: 'with the API', passkey: 'by passkey', token: 'with a one-time token' };

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

/** @typedef {{ source: string, name: string, effect: string }} Matched */

/** @param {AuditRow} row */
function rulesOf({ decision }) {
  const matched = /** @type {Matched[]} */ (decision?.matched ?? []);
  if (matched.length === 0) return undefined;
  return matched.map(
    ({ source, name, effect }) =>
      html`<div>${source} ${visibleLine(name)} <span class="quiet">${effect.replaceAll('_', ' ')}</span></div>`,
  );
}
