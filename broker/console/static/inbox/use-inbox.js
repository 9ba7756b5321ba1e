// Everything that waits for the owners, kept up to date for as long as the console is open.
import { ask } from '/console/api.js';
import { useCallback, useEffect, useRef, useState } from '/console/html.js';
import { find } from '/console/inbox/decide.js';
import { entryOf, isWaiting, merge, settled } from '/console/inbox/entries.js';
import { whatBecame } from '/console/inbox/words.js';
import { followNews } from '/console/shell/news.js';

/** As many as the broker answers at once. */
const MOST = 200;

/** Everything that waits there, to the last page. */
async function pagesOf(path, name) {
  const found = [];
  for (let before = ''; ; ) {
    const page = await ask('GET', `${path}?status=pending&limit=${MOST}${before}`);
    found.push(...page[name]);
    if (page.next === null) return found;
    before = `&before=${page.next}`;
  }
}

async function findWaiting() {
  const [approvals, requests, registrations] = await Promise.all([
    pagesOf('/owner/approvals', 'approvals'),
    pagesOf('/owner/access-requests', 'access_requests'),
    pagesOf('/owner/registrations', 'registrations'),
  ]);
  const found = [
    ...approvals.map((item) => entryOf('approval', item)),
    ...requests.map((item) => entryOf('access', item)),
    ...registrations.map((item) => entryOf('registration', item)),
  ];
  // Who waits longest stands first.
  return found.sort((a, b) => a.item.created_at.localeCompare(b.item.created_at));
}

/**
 * `entries`: undefined until they were read once. `live`: whether news arrive by themselves. `settle(key, became)` says
 * what became of one here; `tidy()` puts away what was decided; `reload()` looks at once.
 */
export function useInbox(owner) {
  const [entries, setEntries] = useState(undefined);
  const [live, setLive] = useState(undefined);
  const [error, setError] = useState(undefined);
  const reading = useRef({ now: false, again: false });

  const reload = useCallback(async () => {
    const state = reading.current;
    state.again = true;
    if (state.now) return;
    state.now = true;
    try {
      while (state.again) {
        state.again = false;
        const found = await findWaiting();
        setEntries((before) => merge(before ?? [], found));
        setError(undefined);
      }
    } catch (failure) {
      setError(failure);
    } finally {
      state.now = false;
    }
  }, []);

  useEffect(() => {
    reload();
    return followNews(owner.id, { changed: reload, live: setLive });
  }, [owner.id]);

  const settle = useCallback((key, became) => setEntries((before) => settled(before, key, became)), []);

  // Decided elsewhere, or too late: how it ended is asked for once.
  const asked = useRef(new Set());
  useEffect(() => {
    for (const entry of entries ?? []) {
      if (!entry.gone || entry.became || asked.current.has(entry.key)) continue;
      asked.current.add(entry.key);
      find(entry).then(
        (now) => settle(entry.key, whatBecame(entry.kind, now)),
        // A registration is forgotten a day after its time was over.
        ({ code }) =>
          code === 'not_found' ? settle(entry.key, whatBecame(entry.kind, {})) : asked.current.delete(entry.key),
      );
    }
  }, [entries]);

  const tidy = useCallback(() => setEntries((before) => before?.filter(isWaiting)), []);
  return { entries, live, error, reload, settle, tidy };
}
