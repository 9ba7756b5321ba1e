// The limit field of a rule: how much passes in a period before the rule applies.
/** @typedef {import('/console/policies/effects.js').Limit} Limit */
import { html } from '/console/html.js';
import { changedBy, checkedTo, valueTo } from '/console/shell/fields.js';

const PERIODS = ['hour', 'day', 'week', 'month'];
const NEW = Object.freeze({ most: 10, per: 'day' });

/** @param {{ id: string, limit: Limit | undefined, problems: readonly string[], change: (limit: Limit | undefined) => void }} props */
export function LimitField({ id, limit, problems, change }) {
  const set = (/** @type {{ [Field in keyof Limit]?: Limit[Field] | undefined }} */ to) => change(changedBy(limit, to));
  return html`
    <fieldset data-field="limit">
      <legend>Only beyond a limit</legend>
      <label class="choice"><input type="checkbox" id=${`${id}-limited`} checked=${limit !== undefined} onChange=${checkedTo((is) => change(is ? NEW : undefined))} /><span>Apply only beyond this limit in each period</span></label>
      ${
        limit &&
        html`<div class="fields">
          <div class="field">
            <label for=${`${id}-most`}>At most</label>
            <input id=${`${id}-most`} type="number" min="0" step="any" value=${limit.most} onInput=${valueTo((value) => set({ most: Number(value) }))} />
          </div>
          <div class="field">
            <label for=${`${id}-per`}>In each</label>
            <select id=${`${id}-per`} value=${limit.per} onChange=${valueTo((value) => set({ per: value }))}>
              ${PERIODS.map((one) => html`<option key=${one} value=${one} selected=${one === limit.per}>${one}</option>`)}
            </select>
          </div>
          <div class="field">
            <label for=${`${id}-of`}>Of <span class="quiet">(optional)</span></label>
            <input id=${`${id}-of`} maxlength="2048" autocomplete="off" autocapitalize="none" spellcheck=${false} placeholder="request.body.amount" value=${limit.of ?? ''} aria-describedby=${`${id}-of-hint`} onInput=${valueTo((value) => set({ of: value === '' ? undefined : value }))} />
            <p class="hint" id=${`${id}-of-hint`}>The amount of a call. Left empty, calls are counted. Periods are calendar periods in UTC.</p>
          </div>
          <label class="choice"><input type="checkbox" checked=${limit.together === true} onChange=${checkedTo((is) => set({ together: is ? true : undefined }))} /><span>Of all agents together. <span class="quiet">Otherwise each has its own.</span></span></label>
        </div>`
      }
      ${problems.map((problem) => html`<p class="wrong" role="alert" key=${problem}>${problem}</p>`)}
    </fieldset>
  `;
}
