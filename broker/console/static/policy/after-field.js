// The look-back field of a rule: which earlier calls of an agent, and for how long.
/** @typedef {import('/console/policies/effects.js').After} After */
/** @typedef {import('/console/policy/known.js').Known} Known */
import { html } from '/console/html.js';
import { SelectionFields } from '/console/policy/selection-fields.js';
import { changedBy, checkedTo, valueTo } from '/console/shell/fields.js';

const NEW = Object.freeze({ within: '8h' });
const NONE = () => [];

/** @param {{ id: string, after: After | undefined, known: Known, problems: readonly string[], change: (after: After | undefined) => void }} props */
export function AfterField({ id, after, known, problems, change }) {
  const set = (/** @type {{ [Field in keyof After]?: After[Field] | undefined }} */ to) => change(changedBy(after, to));
  return html`
    <fieldset data-field="after">
      <legend>Only after another call</legend>
      <label class="choice"><input type="checkbox" id=${`${id}-after`} checked=${after !== undefined} onChange=${checkedTo((is) => change(is ? NEW : undefined))} /><span>Apply once the agent made one of these calls before <span class="quiet">(itself, or a child or its parent)</span></span></label>
      ${
        after &&
        html`<div class="fields">
          <div class="field">
            <label for=${`${id}-within`}>For how long after it</label>
            <input id=${`${id}-within`} maxlength="7" autocomplete="off" autocapitalize="none" spellcheck=${false} value=${after.within} aria-describedby=${`${id}-within-hint`} onInput=${valueTo((value) => set({ within: value }))} />
            <p class="hint" id=${`${id}-within-hint`}>Such as 45m, 8h or 7d; at most 30d.</p>
          </div>
          <${SelectionFields} id=${`${id}-after`} selection=${after} known=${known} wrongs=${NONE} set=${set} />
        </div>`
      }
      ${problems.map((problem) => html`<p class="wrong" role="alert" key=${problem}>${problem}</p>`)}
    </fieldset>
  `;
}
