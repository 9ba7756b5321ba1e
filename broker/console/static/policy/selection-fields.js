// The fields that select calls: methods, platforms, scopes, endpoints and a condition.
/** @typedef {import('/console/policies/effects.js').Selection} Selection */
/** @typedef {import('/console/policy/known.js').Known} Known */
import { html, useMemo } from '/console/html.js';
import { ConditionField } from '/console/policy/condition-field.js';
import { endpointOptions, platformOptions, scopeOptions } from '/console/policy/known.js';
import { PatternField } from '/console/policy/pattern-field.js';
import { checkedTo } from '/console/shell/fields.js';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/**
 * `set` changes some members; members set to undefined are removed.
 *
 * @param {{ id: string, selection: Selection, known: Known, wrongs: (field: string) => string[], set: (to: { [Field in keyof Selection]?: Selection[Field] | undefined }) => void }} props
 */
export function SelectionFields({ id, selection, known, wrongs, set }) {
  const { platforms, scopes, methods, endpoints, when } = selection;
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
  const toggled = (/** @type {string} */ method, /** @type {boolean} */ is) => {
    const next = METHODS.filter((one) => (one === method ? is : methods?.includes(one)));
    set({ methods: next.length > 0 ? next : undefined });
  };
  return html`
    <fieldset data-field="methods">
      <legend>Methods</legend>
      <div class="chips">
        ${METHODS.map((method) => html`<label class="chip" key=${method}><input type="checkbox" value=${method} checked=${methods?.includes(method) ?? false} onChange=${checkedTo((is) => toggled(method, is))} />${method}</label>`)}
      </div>
      <p class="small quiet">${methods ? 'Only these. GraphQL and tools are POST.' : 'None chosen: every method.'}</p>
      ${wrongs('methods').map((problem) => html`<p class="wrong" role="alert" key=${problem}>${problem}</p>`)}
    </fieldset>
    <${PatternField} id=${`${id}-platforms`} label="Platforms" any="Every platform" hint="* is any text." values=${platforms} options=${ofPlatforms} problems=${wrongs('platforms')} change=${(/** @type {string[] | undefined} */ to) => set({ platforms: to })} />
    <${PatternField} id=${`${id}-scopes`} label="Scopes" any="Every scope" hint="* is any text, as in crm:*.read." values=${scopes} options=${ofScopes} problems=${wrongs('scopes')} change=${(/** @type {string[] | undefined} */ to) => set({ scopes: to })} />
    <${PatternField} id=${`${id}-endpoints`} label="Endpoints" any="Every endpoint" hint="* is one segment, ** any rest, as in /admin/**." values=${endpoints} options=${ofEndpoints} problems=${wrongs('endpoints')} change=${(/** @type {string[] | undefined} */ to) => set({ endpoints: to })} />
    <${ConditionField} id=${`${id}-when`} value=${when ?? ''} problems=${wrongs('when')} change=${(/** @type {string | undefined} */ to) => set({ when: to })} />
  `;
}
