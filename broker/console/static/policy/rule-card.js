// A rule as a card: one line, and its fields when it is open.
/** @typedef {import('/console/policies/effects.js').Kind} Kind */
/** @typedef {import('/console/policies/effects.js').Rule} Rule */
/** @typedef {import('/console/policy/draft.js').Card} Card */
/** @typedef {import('/console/policy/known.js').Known} Known */
/** @typedef {import('/console/policy/problems.js').Wrong} Wrong */
import { html } from '/console/html.js';
import { afterOf, effectOf, limitOf, maskOf, nameOf } from '/console/policies/effects.js';
import { isWrong, wrongAt } from '/console/policy/problems.js';
import { RuleFields } from '/console/policy/rule-fields.js';
import { visibleLine } from '/console/visible.js';

/**
 * @param {{ card: Card, at: number, kind: Kind, known: Known, open: boolean, wrong: Wrong | undefined, toggle: () => void, change: (rule: Rule) => void, remove: () => void, copy: () => void }} props
 */
export function RuleCard({ card: { key, rule }, at, kind, known, open, wrong, toggle, change, remove, copy }) {
  const { kind: colour, words } = effectOf(rule.effect);
  const id = `rule-${key}`;
  const name = visibleLine(nameOf(rule, at));
  return html`
    <li class="sheet rule-card" data-rule=${at} data-open=${open}>
      <h3>
        <button type="button" class="plain rule-opener" id=${id} aria-expanded=${open} aria-controls=${`${id}-fields`} onClick=${toggle}>
          <span class="badge" data-kind=${colour}>${words}</span>
          <strong class="theirs">${name}</strong>
          <span class="small quiet theirs">${summary(rule)}</span>
          ${isWrong(wrong, rule) && html`<span class="badge" data-kind="bad">To be corrected</span>`}
        </button>
      </h3>
      ${
        open &&
        html`<div class="fields" id=${`${id}-fields`}>
          ${wrongAt(wrong, rule, '').map((problem) => html`<p class="wrong" role="alert" key=${problem}>${problem}</p>`)}
          <${RuleFields} id=${id} rule=${rule} kind=${kind} known=${known} wrong=${wrong} change=${change} />
          <div class="buttons">
            <button type="button" class="compact" onClick=${copy}>Duplicate<span class="unseen"> ${name}</span></button>
            <button type="button" class="compact danger" data-remove=${at} onClick=${remove}>Take out<span class="unseen"> ${name}</span></button>
          </div>
        </div>`
      }
    </li>
  `;
}

/** Returns what the rule matches, on one line. @param {Rule} rule */
function summary({ methods, endpoints, scopes, platforms, mask, limit, after, when }) {
  const parts = [methods, endpoints, scopes, platforms].flatMap((list) => (list ? [short(list)] : []));
  if (mask) parts.unshift(maskOf(mask));
  if (limit) parts.push(`beyond ${limitOf(limit)}`);
  if (after) parts.push(afterOf(after));
  if (when !== undefined) parts.push(`if ${when.length > 80 ? `${when.slice(0, 80)}…` : when}`);
  return visibleLine(parts.length > 0 ? parts.join(' · ') : 'every call');
}

const short = (/** @type {readonly string[]} */ list) =>
  list.slice(0, 3).join(', ') + (list.length > 3 ? ` and ${list.length - 3} more` : '');
