// The fields of one rule.
/** @typedef {import('/console/policies/effects.js').Kind} Kind */
/** @typedef {import('/console/policies/effects.js').Rule} Rule */
/** @typedef {import('/console/policy/known.js').Known} Known */
/** @typedef {import('/console/policy/problems.js').Wrong} Wrong */
import { html, useMemo } from '/console/html.js';
import { EFFECTS_OF, effectOf } from '/console/policies/effects.js';
import { ConditionField } from '/console/policy/condition-field.js';
import { endpointOptions, platformOptions, scopeOptions } from '/console/policy/known.js';
import { LimitField } from '/console/policy/limit-field.js';
import { PatternField } from '/console/policy/pattern-field.js';
import { wrongAt } from '/console/policy/problems.js';
import { checkedTo, valueTo } from '/console/shell/fields.js';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** @param {{ id: string, rule: Rule, kind: Kind, known: Known, wrong: Wrong | undefined, change: (rule: Rule) => void }} props */
export function RuleFields({ id, rule, kind, known, wrong, change }) {
  const { effect, platforms, scopes, methods, endpoints } = rule;
  const set = (/** @type {{ [Field in keyof Rule]?: Rule[Field] | undefined }} */ to) => {
    const next = /** @type {Record<string, unknown>} */ ({ ...rule, ...to });
    for (const [field, value] of Object.entries(next)) if (value === undefined) delete next[field];
    // Only a guardrail that asks a person can be remembered.
    if (next.effect !== 'require_approval' || next.limit) delete next.remember;
    // What allows has no limit: what denies, or asks, applies beyond one.
    if (next.effect === 'allow') delete next.limit;
    change(/** @type {Rule} */ (next));
  };
  const ofPlatforms = useMemo(() => platformOptions(known), [known]);
  const ofScopes = useMemo(() => scopeOptions(known, { ...(platforms && { platforms }) }), [known, platforms]);
  const ofEndpoints = useMemo(
    () =>
      endpointOptions(known, {
        ...(platforms && { platforms }),
        ...(scopes && { scopes }),
        ...(methods && { methods }),
      }),
    [known, platforms, scopes, methods],
  );
  const wrongs = (/** @type {string} */ field) => wrongAt(wrong, rule, field);
  const toggled = (/** @type {string} */ method, /** @type {boolean} */ is) => {
    const next = METHODS.filter((one) => (one === method ? is : methods?.includes(one)));
    set({ methods: next.length > 0 ? next : undefined });
  };
  return html`
    <fieldset data-field="effect">
      <legend>What happens</legend>
      <div class="chips">
        ${EFFECTS_OF[kind].map(
          (one) =>
            html`<label class="chip" key=${one}><input type="radio" name=${`${id}-effect`} value=${one} checked=${effect === one} onChange=${() => set({ effect: one })} />${effectOf(one).words}</label>`,
        )}
      </div>
      <p class="small quiet">${effectOf(effect).says}</p>
      <${Wrongs} problems=${wrongs('effect')} />
    </fieldset>
    <div class="field" data-field="name">
      <label for=${`${id}-name`}>Name ${kind === 'policy' && html`<span class="quiet">(optional)</span>`}</label>
      <input id=${`${id}-name`} maxlength="64" autocomplete="off" value=${rule.name ?? ''} aria-invalid=${wrongs('name').length > 0 ? true : null} onInput=${valueTo((value) => set({ name: value === '' ? undefined : value }))} />
      <p class="hint">What it is called in answers, the activity and receipts.</p>
      <${Wrongs} problems=${wrongs('name')} />
    </div>
    <fieldset data-field="methods">
      <legend>Methods</legend>
      <div class="chips">
        ${METHODS.map((method) => html`<label class="chip" key=${method}><input type="checkbox" value=${method} checked=${methods?.includes(method) ?? false} onChange=${checkedTo((is) => toggled(method, is))} />${method}</label>`)}
      </div>
      <p class="small quiet">${methods ? 'Only these. GraphQL and tools are POST.' : 'None chosen: every method.'}</p>
      <${Wrongs} problems=${wrongs('methods')} />
    </fieldset>
    <${PatternField} id=${`${id}-platforms`} label="Platforms" any="Every platform" hint="* is any text." values=${platforms} options=${ofPlatforms} problems=${wrongs('platforms')} change=${(/** @type {string[] | undefined} */ to) => set({ platforms: to })} />
    <${PatternField} id=${`${id}-scopes`} label="Scopes" any="Every scope" hint="* is any text, as in crm:*.read." values=${scopes} options=${ofScopes} problems=${wrongs('scopes')} change=${(/** @type {string[] | undefined} */ to) => set({ scopes: to })} />
    <${PatternField} id=${`${id}-endpoints`} label="Endpoints" any="Every endpoint" hint="* is one segment, ** any rest, as in /admin/**." values=${endpoints} options=${ofEndpoints} problems=${wrongs('endpoints')} change=${(/** @type {string[] | undefined} */ to) => set({ endpoints: to })} />
    <${ConditionField} id=${`${id}-when`} value=${rule.when ?? ''} problems=${wrongs('when')} change=${(/** @type {string | undefined} */ to) => set({ when: to })} />
    ${effect !== 'allow' && html`<${LimitField} id=${`${id}-limit`} limit=${rule.limit} problems=${wrongs('limit')} change=${(/** @type {Rule['limit']} */ to) => set({ limit: to })} />`}
    ${
      kind === 'guardrails' &&
      effect === 'require_approval' &&
      !rule.limit &&
      html`<label class="choice" data-field="remember"><input type="checkbox" checked=${rule.remember === true} onChange=${checkedTo((is) => set({ remember: is ? true : undefined }))} /><span>A standing approval may stand in for it. <span class="quiet">Otherwise every such call is asked for.</span></span></label>`
    }
    <${Wrongs} problems=${wrongs('remember')} />
  `;
}

/** @param {{ problems: readonly string[] }} props */
const Wrongs = ({ problems }) =>
  problems.map((problem) => html`<p class="wrong" role="alert" key=${problem}>${problem}</p>`);
