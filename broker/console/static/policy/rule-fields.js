// The fields of a rule.
/** @typedef {import('/console/policies/effects.js').After} After */
/** @typedef {import('/console/policy/known.js').Known} Known */
/** @typedef {import('/console/policies/effects.js').Kind} Kind */
/** @typedef {import('/console/policies/effects.js').Rule} Rule */
/** @typedef {import('/console/policy/problems.js').Wrong} Wrong */
import { html } from '/console/html.js';
import { EFFECTS_OF, effectOf } from '/console/policies/effects.js';
import { LimitField } from '/console/policy/limit-field.js';
import { MaskField } from '/console/policy/mask-field.js';
import { wrongAt } from '/console/policy/problems.js';
import { SelectionFields } from '/console/policy/selection-fields.js';
import { changedBy, checkedTo, valueTo } from '/console/shell/fields.js';

/** @param {{ id: string, rule: Rule, kind: Kind, known: Known, wrong: Wrong | undefined, change: (rule: Rule) => void }} props */
export function RuleFields({ id, rule, kind, known, wrong, change }) {
  const { effect } = rule;
  const set = (/** @type {{ [Field in keyof Rule]?: Rule[Field] | undefined }} */ to) => {
    const next = changedBy(rule, to);
    if (next.effect !== 'require_approval') delete next.approvers;
    // Only a guardrail that requires the approval of one person can remember a decision.
    if (next.effect !== 'require_approval' || next.limit || next.approvers) delete next.remember;
    // Only rules that deny or require approval can have a limit or a look-back condition, not those that allow or mask.
    if (!isStopping(next.effect)) {
      delete next.limit;
      delete next.after;
    }
    if (next.effect !== 'mask') delete next.mask;
    else next.mask ??= {};
    change(next);
  };
  const wrongs = (/** @type {string} */ field) => wrongAt(wrong, rule, field);
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
      <p class="hint">Its name in answers, the activity and receipts.</p>
      <${Wrongs} problems=${wrongs('name')} />
    </div>
    <${SelectionFields} id=${id} selection=${rule} known=${known} wrongs=${wrongs} set=${set} />
    ${effect === 'mask' && html`<${MaskField} id=${`${id}-mask`} mask=${rule.mask} problems=${wrongs('mask')} change=${(/** @type {Rule['mask']} */ to) => set({ mask: to })} />`}
    ${isStopping(effect) && !rule.after && html`<${LimitField} id=${`${id}-limit`} limit=${rule.limit} problems=${wrongs('limit')} change=${(/** @type {Rule['limit']} */ to) => set({ limit: to })} />`}
    ${isStopping(effect) && !rule.limit && html`<${AfterField} id=${id} after=${rule.after} known=${known} problems=${wrongs('after')} change=${(/** @type {Rule['after']} */ to) => set({ after: to })} />`}
    ${
      effect === 'require_approval' &&
      html`<div class="field" data-field="approvers">
        <label for=${`${id}-approvers`}>People who have to approve</label>
        <input id=${`${id}-approvers`} type="number" min="1" max=${MAX_APPROVERS} value=${rule.approvers ?? 1} onInput=${valueTo((value) => set({ approvers: Number(value) > 1 ? Number(value) : undefined }))} />
        <p class="hint">Each of them with a role that may decide. One denial denies.</p>
        <${Wrongs} problems=${wrongs('approvers')} />
      </div>`
    }
    ${
      kind === 'guardrails' &&
      effect === 'require_approval' &&
      !rule.limit &&
      !rule.approvers &&
      html`<label class="choice" data-field="remember"><input type="checkbox" checked=${rule.remember === true} onChange=${checkedTo((is) => set({ remember: is ? true : undefined }))} /><span>A standing approval may replace this approval. <span class="quiet">Otherwise every such call waits.</span></span></label>`
    }
    <${Wrongs} problems=${wrongs('remember')} />
  `;
}

const MAX_APPROVERS = 5;

/** Whether a rule with this effect stops calls or holds them. @param {string} effect */
const isStopping = (effect) => effect !== 'allow' && effect !== 'mask';

/** @param {{ problems: readonly string[] }} props */
const Wrongs = ({ problems }) =>
  problems.map((problem) => html`<p class="wrong" role="alert" key=${problem}>${problem}</p>`);

// The look-back field of a rule: which earlier calls of an agent, and for how long.
const NEW = Object.freeze({ within: '8h' });
const NONE = () => [];

/** @param {{ id: string, after: After | undefined, known: Known, problems: readonly string[], change: (after: After | undefined) => void }} props */
function AfterField({ id, after, known, problems, change }) {
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
