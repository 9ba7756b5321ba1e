// The differences between two lists of rules, as HTML.
/** @typedef {import('/console/policies/effects.js').Rule} Rule */
/** @typedef {import('/console/policy/differ.js').Difference} Difference */
import { html } from '/console/html.js';
import { afterOf, effectOf, limitOf, maskOf } from '/console/policies/effects.js';
import { differences } from '/console/policy/differ.js';
import { visibleLine } from '/console/visible.js';

const FIELDS = /** @type {const} */ ([
  'effect',
  'methods',
  'endpoints',
  'scopes',
  'platforms',
  'when',
  'mask',
  'limit',
  'after',
  'remember',
  'approvers',
]);
/** Maximum number of differences shown; with more the policy is a different one. */
const SHOWN = 50;

/** @param {{ before: readonly Rule[], after: readonly Rule[], none?: string }} props */
export function DiffView({ before, after, none = 'The rules are the same.' }) {
  const all = differences(before, after);
  if (all.length === 0) return html`<p class="small quiet">${none}</p>`;
  return html`
    <ul role="list" class="diff">
      ${all.slice(0, SHOWN).map((one, at) => html`<${Entry} key=${at} ...${one} />`)}
      ${all.length > SHOWN && html`<li class="quiet small">And ${all.length - SHOWN} more.</li>`}
    </ul>
  `;
}

/** @param {Difference} props */
function Entry({ before, after }) {
  if (before && after)
    return html`<li data-change="changed">
      <p><span class="mark" aria-hidden="true">~</span> <span class="quiet">Changed:</span> <${Named} rule=${after} /></p>
      <dl class="facts small">
        ${FIELDS.filter((field) => said(before, field) !== said(after, field)).map(
          (field) =>
            html`<dt key=${field}>${field}</dt><dd class="theirs"><del>${said(before, field)}</del> → <ins>${said(after, field)}</ins></dd>`,
        )}
      </dl>
    </li>`;
  const rule = before ?? after;
  if (!rule) return null;
  return html`<li data-change=${before ? 'gone' : 'come'}>
    <p><span class="mark" aria-hidden="true">${before ? '−' : '+'}</span> <span class="quiet">${before ? 'Removed:' : 'New:'}</span> <${Named} rule=${rule} /></p>
    <p class="small theirs">${
      FIELDS.filter((field) => field !== 'effect' && rule[field] !== undefined)
        .map((field) => `${field} ${said(rule, field)}`)
        .join(' · ') || 'every call'
    }</p>
  </li>`;
}

/** @param {{ rule: Rule }} props */
function Named({ rule: { name, effect } }) {
  const { kind, words } = effectOf(effect);
  return html`<span class="badge" data-kind=${kind}>${words}</span> ${name !== undefined && html`<strong class="theirs">${visibleLine(name)}</strong>`}`;
}

/** @param {Rule} rule @param {(typeof FIELDS)[number]} field */
function said(rule, field) {
  const value = rule[field];
  if (rule.mask && field === 'mask') return visibleLine(maskOf(rule.mask));
  if (rule.limit && field === 'limit') return visibleLine(limitOf(rule.limit));
  if (rule.after && field === 'after') return visibleLine(afterOf(rule.after));
  if (value === undefined)
    return field === 'when' ? 'no condition' : ['mask', 'limit', 'after'].includes(field) ? 'none' : 'any';
  if (field === 'effect') return effectOf(String(value)).words;
  return visibleLine(Array.isArray(value) ? value.join(', ') : String(value));
}
