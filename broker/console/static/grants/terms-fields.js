// The fields of a grant: scopes with what each allows, presets of scopes, limits, expiry, and whether every call needs approval.
/** @typedef {import('../../answers.ts').WholePlatform} WholePlatform */
/** @typedef {import('/console/grants/terms.js').ListName} ListName */
/** @typedef {import('/console/grants/terms.js').Terms} Terms */
import { DURATIONS, listsOn, SAME } from '/console/grants/terms.js';
import { html, useId } from '/console/html.js';
import { checkedTo, valueTo } from '/console/shell/fields.js';
import { visibleLine } from '/console/visible.js';

/** @type {Record<ListName, { label: string, hint: string }>} */
const LIST_WORDS = {
  repos: { label: 'Only in these repositories', hint: 'owner/name or owner/*, one a line. Empty: all.' },
  refs: {
    label: 'Only to these branches and tags',
    hint: 'agent/*, release/** or refs/tags/v*, one a line. Empty: all.',
  },
  recipients: {
    label: 'Only to these recipients',
    hint: 'Addresses, @acme.example, or ids of the platform, one a line. Empty: anybody.',
  },
};
const MAX_RULES = 3;

/**
 * `lists`: the limits that can be set here. `ends`: when the existing grant expires, in words; undefined for a new grant.
 *
 * @param {{ platform: WholePlatform, terms: Terms, ends?: string | undefined, lists?: readonly ListName[], change: (more: Partial<Terms>) => void }} props
 */
export function TermsFields({ platform, terms, ends, lists = listsOn(platform), change }) {
  const id = useId();
  const lasts = ends === undefined ? DURATIONS : [/** @type {const} */ ([SAME, `As now: ${ends}`]), ...DURATIONS];
  return html`
    <${Scopes} platform=${platform} chosen=${terms.scopes} choose=${(/** @type {readonly string[]} */ scopes) => change({ scopes })} />
    ${lists.map(
      (name) => html`<div class="field" key=${name}>
        <label for="${id}-${name}">${LIST_WORDS[name].label} <span class="quiet">(optional)</span></label>
        <textarea id="${id}-${name}" rows="1" data-list=${name} aria-describedby="${id}-${name}-hint" value=${terms[name]} onInput=${valueTo((text) => change({ [name]: text }))}></textarea>
        <p class="hint" id="${id}-${name}-hint">${LIST_WORDS[name].hint}</p>
      </div>`,
    )}
    <div class="field">
      <label for="${id}-lasts">For how long</label>
      <select id="${id}-lasts" data-field="lasts" onChange=${valueTo((value) => change({ lasts: value }))}>
        ${lasts.map(([value, words]) => html`<option value=${value} selected=${value === terms.lasts}>${words}</option>`)}
      </select>
    </div>
    <label class="choice">
      <input type="checkbox" data-field="approval" checked=${terms.approval} onChange=${checkedTo((approval) => change({ approval }))} />
      <span>Every call with this grant waits for an approval</span>
    </label>
  `;
}

/** @param {{ platform: WholePlatform, chosen: readonly string[], choose: (scopes: readonly string[]) => void }} props */
function Scopes({ platform, chosen, choose }) {
  const { scopes, presets } = platform;
  const order = scopes.map(({ scope }) => scope);
  const put = (/** @type {readonly string[]} */ some) =>
    choose([...order.filter((one) => some.includes(one)), ...some.filter((one) => !order.includes(one))]);
  const isSet = (/** @type {readonly string[]} */ set) =>
    set.length === chosen.length && set.every((one) => chosen.includes(one));
  // A scope that the platform no longer has can only be removed.
  const unknown = chosen.filter((one) => !order.includes(one));
  return html`<fieldset class="scopes-to-grant">
    <legend>Scopes <span class="quiet">(${chosen.length} chosen)</span></legend>
    ${
      presets.length > 0 &&
      html`<div class="buttons presets">
        ${presets.map(({ name, scopes: set }) => html`<button type="button" key=${name} class="compact" data-preset=${name} aria-pressed=${isSet(set)} onClick=${() => put(set)}>${visibleLine(name)}</button>`)}
      </div>`
    }
    <div class="scope-list">
      ${[...scopes, ...unknown.map((scope) => ({ scope, rules: ['no longer known to the platform'] }))].map(
        ({ scope, rules }) => html`<label class="choice" key=${scope}>
          <input type="checkbox" name=${scope} checked=${chosen.includes(scope)} onChange=${checkedTo((is) => put(is ? [...chosen, scope] : chosen.filter((one) => one !== scope)))} />
          <span><code class="theirs">${visibleLine(scope)}</code> <span class="small quiet theirs">${rules.slice(0, MAX_RULES).map(visibleLine).join(', ')}${rules.length > MAX_RULES && ` and ${rules.length - MAX_RULES} more`}</span></span>
        </label>`,
      )}
    </div>
  </fieldset>`;
}
