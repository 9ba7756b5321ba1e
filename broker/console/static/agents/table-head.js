// The heads of the table, which set its order; on a phone a select replaces them.
/** @typedef {import('/console/agents/filter.js').Filters} Filters */
import { html } from '/console/html.js';
import { applyFilters } from '/console/shell/filters.js';

/** `first`: the order at the first click, newest or latest first where that is what people look for. */
const HEADS = [
  { key: 'name', words: 'Agent', first: 'name' },
  { key: 'owner', words: 'Owner', first: 'owner' },
  { key: 'policy', words: 'Policy', first: 'policy' },
  { key: 'status', words: 'State', first: 'status' },
  { key: 'last_call', words: 'Last call', first: '-last_call' },
  { words: 'Last 24 hours', column: 'day' },
  { words: 'Waits', column: 'waits' },
];

/** @param {{ filters: Filters }} props */
export function TableHead({ filters }) {
  const sort = filters.sort || 'name';
  return html`<thead>
    <tr>
      ${HEADS.map(({ key, words, column, first = '' }) => {
        if (!key) return html`<th scope="col" class=${column}>${words}</th>`;
        const is = sort.replace('-', '') === key;
        const other = sort.startsWith('-') ? key : `-${key}`;
        return html`<th scope="col" class=${key} aria-sort=${is ? (sort.startsWith('-') ? 'descending' : 'ascending') : 'none'}>
          <button type="button" class="plain sorter" id=${`sort-${key}`} onClick=${() => applyFilters('/console/agents', { ...filters, sort: is ? other : first })}>
            ${words}<span class="direction" aria-hidden="true">${is ? (sort.startsWith('-') ? '↓' : '↑') : ''}</span>
          </button>
        </th>`;
      })}
      <th scope="col" class="actions"><span class="unseen">Actions</span></th>
    </tr>
  </thead>`;
}
