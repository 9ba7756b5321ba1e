// Everything that waits for the owners, kept up to date for as long as the console is open.
/** @typedef {import('../../answers.ts').Me} Me */
/** @typedef {import('/console/inbox/entries.js').Entry} Entry */
/** @typedef {import('/console/inbox/words.js').Became} Became */
import { asError, ask, Refused } from '/console/api.js';
import { useCallback, useEffect, useRef, useState } from '/console/html.js';
import { find } from '/console/inbox/decide.js';
import { entryOf, isWaiting, merge, settled } from '/console/inbox/entries.js';
import { whatBecame } from '/console/inbox/words.js';
import { followNews } from '/console/shell/news.js';

/** How long the next reading waits at most after one that took long. */
const MOST_PAUSE_MS = 2_000;
/** So many are asked for at once how they ended. */
const ASKED_AT_ONCE = 6;
/** How often a call that is under way is asked for. */
const UNDER_WAY_MS = 1_000;
const pause = (/** @type {number} */ ms) => new Promise((over) => setTimeout(over, ms));
/** As many as the broker answers at once. */
const MOST = 200;

/**
 * Everything that waits, to the last page.
 *
 * @template T
 * @param {(query: string) => Promise<{ items: T[], next: string | null }>} read
 */
async function pagesOf(read) {
  /** @type {T[]} */
  const found = [];
  for (let before = ''; ; ) {
    const { items, next } = await read(`status=pending&limit=${MOST}${before}`);
    found.push(...items);
    if (next === null) return found;
    before = `&before=${next}`;
  }
}

async function readCalls(/** @type {string} */ query) {
  const { approvals: items, next } = await ask('GET', `/owner/approvals?${query}`);
  return { items, next };
}

async function readRequests(/** @type {string} */ query) {
  const { access_requests: items, next } = await ask('GET', `/owner/access-requests?${query}`);
  return { items, next };
}

async function readRegistrations(/** @type {string} */ query) {
  const { registrations: items, next } = await ask('GET', `/owner/registrations?${query}`);
  return { items, next };
}

async function findWaiting() {
  const [approvals, requests, registrations] = await Promise.all([
    pagesOf(readCalls),
    pagesOf(readRequests),
    pagesOf(readRegistrations),
  ]);
  /** @type {Entry[]} */
  const found = [
    ...approvals.map((item) => entryOf({ kind: /** @type {const} */ ('approval'), item })),
    ...requests.map((item) => entryOf({ kind: /** @type {const} */ ('access'), item })),
    ...registrations.map((item) => entryOf({ kind: /** @type {const} */ ('registration'), item })),
  ];
  // Who waits longest stands first.
  return found.sort((a, b) => a.item.created_at.localeCompare(b.item.created_at));
}

/** @typedef {ReturnType<typeof useInbox>} InboxState */

/**
 * `entries`: undefined until they were read once. `live`: whether news arrive by themselves. `settle(key, became)` says
 * what became of one here; `tidy()` puts away what was decided; `reload()` looks at once.
 *
 * @param {Me} owner
 */
export function useInbox(owner) {
  const [entries, setEntries] = useState(/** @type {Entry[] | undefined} */ (undefined));
  const [live, setLive] = useState(/** @type {boolean | undefined} */ (undefined));
  const [error, setError] = useState(/** @type {Error | undefined} */ (undefined));
  const reading = useRef({ now: false, again: false });

  const reload = useCallback(async () => {
    const state = reading.current;
    state.again = true;
    if (state.now) return;
    state.now = true;
    try {
      for (let took = 0; state.again; ) {
        // Half of the time at most goes into reading a large inbox of which much is decided.
        if (took > 0) await pause(took);
        state.again = false;
        const began = performance.now();
        const found = await findWaiting();
        took = Math.min(MOST_PAUSE_MS, performance.now() - began);
        setEntries((before) => merge(before ?? [], found));
        setError(undefined);
      }
    } catch (failure) {
      setError(asError(failure));
    } finally {
      state.now = false;
    }
  }, []);

  useEffect(() => {
    reload();
    return followNews(owner.id, { changed: reload, live: setLive });
  }, [owner.id]);

  const settle = useCallback(
    (/** @type {string} */ key, /** @type {Became} */ became) =>
      setEntries((before) => before && settled(before, key, became)),
    [],
  );

  // Decided elsewhere, or too late: how it ended is asked for once; of a call that is under way, until it has ended.
  const asked = useRef(/** @type {Set<string>} */ (new Set()));
  useEffect(() => {
    for (const entry of entries ?? []) {
      const isDue = entry.became ? entry.became.underWay : entry.gone;
      if (!isDue || asked.current.has(entry.key) || asked.current.size >= ASKED_AT_ONCE) continue;
      asked.current.add(entry.key);
      const asking = entry.became ? pause(UNDER_WAY_MS).then(() => find(entry)) : find(entry);
      asking
        .finally(() => asked.current.delete(entry.key))
        .then(
          (now) => settle(entry.key, whatBecame(entry.kind, now)),
          // A registration is forgotten a day after its time was over.
          (failure) =>
            failure instanceof Refused && failure.code === 'not_found'
              ? settle(entry.key, whatBecame(entry.kind, {}))
              : undefined,
        );
    }
  }, [entries]);

  const tidy = useCallback(() => setEntries((before) => before?.filter(isWaiting)), []);
  return { entries, live, error, reload, settle, tidy };
}
