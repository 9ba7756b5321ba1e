// A rule in words, as the broker returns them.
/** @typedef {import('/console/policies/effects.js').Rule} Rule */
import { html } from '/console/html.js';
import { effectOf, nameOf } from '/console/policies/effects.js';
import { visibleLine } from '/console/visible.js';

const capital = (/** @type {string} */ text) => text.slice(0, 1).toUpperCase() + text.slice(1);

/**
 * `at`: the rule's index in the list. `words`: its description.
 *
 * @param {{ rule: Rule, at: number, words: string }} props
 */
export function RuleLine({ rule, at, words }) {
  const { kind, words: effect } = effectOf(rule.effect);
  return html`
    <li class="row rule-line">
      <p class="name"><span class="badge" data-kind=${kind}>${effect}</span> <strong class="theirs">${visibleLine(nameOf(rule, at))}</strong></p>
      <p class="theirs">${visibleLine(capital(words))}${words.endsWith('…') ? '' : '.'}</p>
      <${Rest} rule=${rule} words=${words} />
    </li>
  `;
}

/** The parts of the rule that the sentence omits because of their length. @param {{ rule: Rule, words: string }} props */
function Rest({ rule, words }) {
  const { when } = rule;
  const cut = when !== undefined && !words.includes(when.replace(/\s+/g, ' ').trim());
  const lists = /** @type {const} */ (['platforms', 'scopes', 'endpoints']).filter(
    (name) => (rule[name]?.length ?? 0) > 4,
  );
  return html`
    ${cut && html`<pre class="small condition">${visibleLine(when)}</pre>`}
    ${lists.map((name) => html`<p class="small quiet theirs" key=${name}>${capital(name)}: ${rule[name]?.map(visibleLine).join(', ')}</p>`)}
    ${(rule.mask?.members?.length ?? 0) > 4 && html`<p class="small quiet theirs">Members: ${rule.mask?.members?.map(visibleLine).join(', ')}</p>`}
    ${(rule.approvers ?? 1) > 1 && html`<p class="small quiet">${rule.approvers} people have to approve.</p>`}
    ${rule.remember && html`<p class="small quiet">A standing approval may replace this approval.</p>`}
  `;
}
