/** @typedef {import('/console/html.js').Children} Children */
import { html } from '/console/html.js';

/**
 * An empty state: says what will be here, and what to do next.
 *
 * @param {{ title: string, children: Children }} props
 */
export const Empty = ({ title, children }) => html`
  <div class="sheet empty">
    <h2>${title}</h2>
    ${children}
  </div>
`;

/** Shown until the first response arrives. */
export const Loading = () => html`<div class="loading" aria-busy="true"><span class="unseen">Loading…</span></div>`;

/**
 * Shown when loading failed.
 *
 * @param {{ error: Error, again: () => void }} props
 */
export const Failed = ({ error, again }) => html`
  <div class="notice" data-kind="bad" role="alert">
    <span>${error.message}</span>
    <button type="button" class="compact" onClick=${again}>Try again</button>
  </div>
`;
