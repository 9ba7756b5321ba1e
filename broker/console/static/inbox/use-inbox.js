// Polls everything that waits for the owners, for as long as the console is open.
/** @typedef {import('../../answers.ts').Me} Me */
/** @typedef {import('/console/inbox/entries.js').Entry} Entry */
/** @typedef {import('/console/inbox/entry-text.js').Outcome} Outcome */
import { asError, ask, Refused } from '/console/api.js';
import { useCallback, useEffect, useRef, useState } from '/console/html.js';
import { find } from '/console/inbox/decide.js';
import { entryOf, isWaiting, merge, settled } from '/console/inbox/entries.js';
import { itemOutcome } from '/console/inbox/entry-text.js';
import { followNews } from '/console/shell/news.js';

/** The maximum pause between two reads after a slow read. */
const MAX_PAUSE_MS = 2_000;
/** Maximum number of concurrent requests for outcomes. */
const CONCURRENCY = 6;
/** Interval at which a call in flight is polled. */
const IN_FLIGHT_POLL_MS = 1_000;
const pause = (/** @type {number} */ ms) => new Promise((over) => setTimeout(over, ms));
/** The page size: the maximum that the broker returns in one response. */
const MAX = 200;

/**
 * Reads all pages of a list.
 *
 * @template T
 * @param {(query: string) => Promise<{ items: T[], next: string | null }>} read
 */
async function pagesOf(read) {
  /** @type {T[]} */
  const found = [];
  for (let before = ''; ; ) {
    const { items, next } = await read(`status=pending&limit=${MAX}${before}`);
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
  // The longest-waiting entries come first.
  return found.sort((a, b) => a.item.created_at.localeCompare(b.item.created_at));
}

/** @typedef {ReturnType<typeof useInbox>} InboxState */

/**
 * `entries`: undefined until the first read. `live`: whether updates arrive by server-sent events. `settle(key, outcome)` records an outcome of a
 * decision made here; `tidy()` removes decided entries; `reload()` reads immediately.
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
        // Pauses as long as the last read took, at most 2 s, so that a large inbox in which much is decided is not read without pause.
        if (took > 0) await pause(took);
        state.again = false;
        const began = performance.now();
        const found = await findWaiting();
        took = Math.min(MAX_PAUSE_MS, performance.now() - began);
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
    (/** @type {string} */ key, /** @type {Outcome} */ outcome) =>
      setEntries((before) => before && settled(before, key, outcome)),
    [],
  );

  // Entries decided elsewhere or expired: the outcome is read once; for a call in flight, until it has ended.
  const asked = useRef(/** @type {Set<string>} */ (new Set()));
  useEffect(() => {
    for (const entry of entries ?? []) {
      const isDue = entry.outcome ? entry.outcome.underWay : entry.gone;
      if (!isDue || asked.current.has(entry.key) || asked.current.size >= CONCURRENCY) continue;
      asked.current.add(entry.key);
      const asking = entry.outcome ? pause(IN_FLIGHT_POLL_MS).then(() => find(entry)) : find(entry);
      asking
        .finally(() => asked.current.delete(entry.key))
        .then(
          (now) => settle(entry.key, itemOutcome(entry.kind, now)),
          // A registration is deleted a day after it expired.
          (failure) =>
            failure instanceof Refused && failure.code === 'not_found'
              ? settle(entry.key, itemOutcome(entry.kind, {}))
              : undefined,
        );
    }
  }, [entries]);

  const tidy = useCallback(() => setEntries((before) => before?.filter(isWaiting)), []);
  return { entries, live, error, reload, settle, tidy };
}
