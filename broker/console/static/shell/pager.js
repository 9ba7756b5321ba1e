// Pages of a list, one at a time, with buttons for the previous and the next one.
import { html, useState } from '/console/html.js';
import { useLoaded } from '/console/shell/loaded.js';

/**
 * Polls one page of a list of the owner API. `path` has a query, and a `limit`. `previous` and `next` show another page; undefined: there is none.
 *
 * @template {import('../../answers.ts').Path<'GET'>} P
 * @param {P} path
 * @param {number} everyMs
 */
export function usePage(path, everyMs) {
  // The cursors of the pages before this one, and of this one, which belong to the path.
  const [{ of, cursors }, setPlace] = useState({ of: path, cursors: /** @type {string[]} */ ([]) });
  const known = of === path ? cursors : [];
  const cursor = known.at(-1);
  const loaded = useLoaded(/** @type {P} */ (cursor === undefined ? path : `${path}&cursor=${cursor}`), everyMs);
  const end = /** @type {{ next?: string | null } | undefined} */ (loaded.answer)?.next;
  const show = (/** @type {string[]} */ some) => () => setPlace({ of: path, cursors: some });
  return {
    ...loaded,
    previous: known.length > 0 ? show(known.slice(0, -1)) : undefined,
    next: end ? show([...known, end]) : undefined,
  };
}

/** Renders the buttons if there is more than one page. @param {{ previous: (() => void) | undefined, next: (() => void) | undefined }} props */
export const Pager = ({ previous, next }) =>
  (previous || next) &&
  html`<p class="more">
    <button type="button" class="compact previous" disabled=${!previous} onClick=${previous}>Previous page</button>
    <button type="button" class="compact next" disabled=${!next} onClick=${next}>Next page</button>
  </p>`;
