// A labelled select that narrows a list.
import { html } from '/console/html.js';
import { valueTo } from '/console/shell/fields.js';
import { visibleLine } from '/console/visible.js';

/** @param {string} a @param {string} b */
const byName = (a, b) => a.localeCompare(b, undefined, { numeric: true, sensitivity: 'base' });

/**
 * `options`: texts by value; `sorted`: whether they are ordered by text. `all`: the text of the empty choice. `choose('')` clears the choice. `more`: what
 * to do for values that are not listed.
 *
 * @param {{
 *   id: string, label: string, all: string, options: ReadonlyMap<string, string>, chosen: string, sorted?: boolean,
 *   choose: (value: string) => void, more?: string,
 * }} props
 */
export function Choice({ id, label, all, options, chosen, sorted = true, choose, more = '' }) {
  const named = [...options].filter(([value]) => value !== '');
  if (sorted) named.sort(([, a], [, b]) => byName(a, b));
  // A value in the address is shown even when its text is unknown or not loaded yet.
  if (chosen !== '' && !options.has(chosen)) named.push([chosen, chosen]);
  return html`
    <label class="unseen" for=${id}>${label}</label>
    <select id=${id} onChange=${valueTo(choose)}>
      <option value="" selected=${chosen === ''}>${all}</option>
      ${named.map(([value, words]) => html`<option key=${value} value=${value} selected=${value === chosen}>${visibleLine(words)}</option>`)}
      ${more && html`<option disabled>${more}</option>`}
    </select>
  `;
}
