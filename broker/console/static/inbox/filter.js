// Filters the inbox by agent, platform, kind and words. The address holds the filter, so that it survives a reload.
/** @typedef {import('/console/inbox/entries.js').Entry} Entry */
import { html, useRef } from '/console/html.js';
import { isWaiting } from '/console/inbox/entries.js';
import { oneLine } from '/console/inbox/entry-text.js';
import { Choice } from '/console/shell/choice.js';
import { valueTo } from '/console/shell/fields.js';
import { applyFilters, isFiltered } from '/console/shell/filters.js';
import { useKeys } from '/console/shell/keys.js';

/** @typedef {{ agent: string, platform: string, kind: string, words: string }} Filters */

/** @type {Record<Entry['kind'], string>} */
const KINDS = { approval: 'Calls', access: 'Access requests', registration: 'New agents' };

export const NAMES = /** @type {const} */ (['agent', 'platform', 'kind', 'words']);

/** @param {Entry} entry */
const agentOf = ({ kind, item }) => (kind === 'registration' ? undefined : item.agent);
/** @param {Entry} entry */
const platformOf = ({ kind, item }) => (kind === 'registration' ? undefined : item.platform);
/** @param {Entry} entry */
const nameOf = ({ kind, item }) => (kind === 'registration' ? undefined : item.platform_name);

/**
 * @param {Entry} entry
 * @param {Filters} filters
 */
export function fits(entry, { agent, platform, kind, words }) {
  if (agent && agentOf(entry)?.agent_id !== agent) return false;
  if (platform && platformOf(entry) !== platform) return false;
  if (kind && entry.kind !== kind) return false;
  const { item } = entry;
  const more = 'reason' in item ? [item.scope, item.reason, item.platform] : [];
  const text = [oneLine(entry), ...more].join(' ').toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/**
 * `shown`: the number of matching entries.
 *
 * @param {{ entries: readonly Entry[], filters: Filters, shown: number }} props
 */
export function Filter({ entries, filters, shown }) {
  const search = useRef(/** @type {HTMLInputElement | null} */ (null));
  useKeys({ '/': () => search.current?.focus() });
  const set = (/** @type {keyof Filters} */ name) => (/** @type {string} */ value) =>
    applyFilters('/console', { ...filters, [name]: value });
  const waiting = entries.filter(isWaiting);
  const agents = new Map(waiting.map(agentOf).map((agent) => [agent?.agent_id ?? '', agent?.name ?? '']));
  const platforms = new Map(waiting.map((entry) => [platformOf(entry) ?? '', nameOf(entry) ?? '']));
  const kinds = new Map(waiting.map(({ kind }) => [kind, KINDS[kind]]));
  return html`
    <div class="filter" role="search">
      <label class="unseen" for="words">Search</label>
      <input id="words" type="search" ref=${search} placeholder="Search" value=${filters.words} onInput=${valueTo(set('words'))} />
      <${Choice} id="by-agent" label="Agent" all="All agents" options=${agents} chosen=${filters.agent} choose=${set('agent')} />
      <${Choice} id="by-platform" label="Platform" all="All platforms" options=${platforms} chosen=${filters.platform} choose=${set('platform')} />
      <${Choice} id="by-kind" label="Kind" all="All kinds" options=${kinds} chosen=${filters.kind} choose=${set('kind')} />
      <p class="small quiet" role="status" id="fitting">${isFiltered(filters) ? `${shown} of ${waiting.length}` : `${waiting.length} waiting`}</p>
    </div>
  `;
}
