// Filters agents by words, state, policy, owner and label. The address holds the filter.
import { STATUS } from '/console/agents/status-labels.js';
import { html, useEffect, useRef, useState } from '/console/html.js';
import { Choice } from '/console/shell/choice.js';
import { valueTo } from '/console/shell/fields.js';
import { applyFilters, isFiltered } from '/console/shell/filters.js';
import { totalWords } from '/console/shell/use-pages.js';

export const NAMES = /** @type {const} */ (['words', 'state', 'policy', 'owner', 'label', 'sort']);
/** @typedef {Record<(typeof NAMES)[number], string>} Filters */

const PAGE_PATH = '/console/agents';
/** Delay in which typing continues, hardly noticeable. */
const PAUSE_MS = 150;

/** Returns the query for the owner API. @param {Filters} filters @param {number} limit */
export function queryOf({ words, state, policy, owner, label, sort }, limit) {
  const asked = {
    q: words.slice(0, 200),
    status: state,
    policy,
    owner,
    label,
    sort: sort || 'name',
    limit: String(limit),
  };
  return new URLSearchParams(Object.entries(asked).filter(([, value]) => value !== '')).toString();
}

const STATES = new Map(
  Object.entries(STATUS)
    .filter(([status]) => status !== 'deleted')
    .map(([status, { words }]) => [status, words]),
);

/** Orders to choose from where the table has no heads. */
const ORDERS = new Map([
  ['-last_call', 'Latest call first'],
  ['last_call', 'Longest unused first'],
  ['status', 'By state'],
  ['owner', 'By owner'],
  ['policy', 'By policy'],
  ['-created', 'Newest first'],
]);

/**
 * @param {{
 *   filters: Filters, total: number | undefined,
 *   policies: ReadonlyMap<string, string>, owners: ReadonlyMap<string, string>, labels: ReadonlyMap<string, string>,
 * }} props
 */
export function Filter({ filters, total, policies, owners, labels }) {
  const set = (/** @type {keyof Filters} */ name) => (/** @type {string} */ value) =>
    applyFilters(PAGE_PATH, { ...filters, [name]: value });
  const { sort: _sort, ...narrowing } = filters;
  return html`
    <div class="filter" role="search">
      <${Words} words=${filters.words} seekWords=${set('words')} />
      <${Choice} id="by-state" label="State" all="All states" options=${STATES} chosen=${filters.state} sorted=${false} choose=${set('state')} />
      ${policies.size > 1 && html`<${Choice} id="by-policy" label="Policy" all="All policies" options=${policies} chosen=${filters.policy} choose=${set('policy')} />`}
      ${owners.size > 1 && html`<${Choice} id="by-owner" label="Owner" all="All owners" options=${owners} chosen=${filters.owner} choose=${set('owner')} />`}
      ${(labels.size > 0 || filters.label) && html`<${Choice} id="by-label" label="Label" all="All labels" options=${labels} chosen=${filters.label} choose=${set('label')} />`}
      <div class="orders"><${Choice} id="by-order" label="Order" all="By name" options=${ORDERS} chosen=${filters.sort} sorted=${false} choose=${set('sort')} /></div>
      <p class="small quiet" role="status" id="fitting">${total === undefined ? '' : `${totalWords(total)}${isFiltered(narrowing) ? ' found' : total === 1 ? ' agent' : ' agents'}`}</p>
    </div>
  `;
}

/** @param {{ words: string, seekWords: (words: string) => void }} props */
function Words({ words, seekWords }) {
  const [written, setWritten] = useState(words);
  const timer = useRef(/** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined));
  useEffect(() => setWritten(words), [words]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const write = (/** @type {string} */ text) => {
    setWritten(text);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => seekWords(text), PAUSE_MS);
  };
  return html`
    <label class="unseen" for="words">Search</label>
    <input id="words" type="search" placeholder="Name, id, policy, owner, label" value=${written} onInput=${valueTo(write)} />
  `;
}
