// The mask field of a rule: what it masks in responses.
/** @typedef {import('/console/policies/effects.js').Mask} Mask */
import { html } from '/console/html.js';
import { KINDS } from '/console/policies/effects.js';
import { PatternField } from '/console/policy/pattern-field.js';
import { changedBy, checkedTo } from '/console/shell/fields.js';

/** @type {readonly never[]} */
const NONE = [];

/** @param {{ id: string, mask: Mask | undefined, problems: readonly string[], change: (mask: Mask) => void }} props */
export function MaskField({ id, mask = {}, problems, change }) {
  const set = (/** @type {{ [Field in keyof Mask]?: Mask[Field] | undefined }} */ to) => change(changedBy(mask, to));
  const toggled = (/** @type {string} */ kind, /** @type {boolean} */ is) => {
    const next = Object.keys(KINDS).filter((one) => (one === kind ? is : mask.values?.includes(one)));
    set({ values: next.length > 0 ? next : undefined });
  };
  return html`
    <fieldset data-field="mask">
      <legend>What is masked</legend>
      <div class="fields">
        <${PatternField} id=${`${id}-members`} label="Members" any="No members" hint="Of JSON: a name at any depth, as in email or *_token, or a path, as in /contacts/*/notes. An answer that is not JSON is then withheld." values=${mask.members} options=${NONE} problems=${NONE} change=${(/** @type {string[] | undefined} */ to) => set({ members: to })} />
        <fieldset data-field="values">
          <legend>Values</legend>
          <div class="chips">
            ${Object.entries(KINDS).map(([kind, words]) => html`<label class="chip" key=${kind}><input type="checkbox" value=${kind} checked=${mask.values?.includes(kind) ?? false} onChange=${checkedTo((is) => toggled(kind, is))} />${words}</label>`)}
          </div>
          <p class="small quiet">Wherever they occur in text, recognised by their format.</p>
        </fieldset>
      </div>
      ${problems.map((problem) => html`<p class="wrong" role="alert" key=${problem}>${problem}</p>`)}
    </fieldset>
  `;
}
