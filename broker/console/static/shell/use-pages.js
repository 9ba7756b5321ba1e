import { asError, ask } from '/console/api.js';
import { useCallback, useEffect, useRef, useState } from '/console/html.js';

/** @typedef {import('../../answers.ts').Agent} Agent */
/** @typedef {{ path: string, agents: Agent[], next: string | null, total: number, more: boolean }} Pages */

/**
 * Pages of agents at an address of the owner API: the first page is polled, further pages are loaded on request. While another address loads, the
 * previous agents stay: `stale`. Polling waits for the response to the last request, because a newer request would drop it.
 *
 * @param {`/owner/agents?${string}`} path
 * @param {number} everyMs
 */
export function useAgentPages(path, everyMs) {
  const [pages, setPages] = useState(/** @type {Pages | undefined} */ (undefined));
  const [error, setError] = useState(/** @type {Error | undefined} */ (undefined));
  const latest = useRef(0);
  const answered = useRef(0);
  const load = useCallback(
    async (/** @type {string | undefined} */ cursor) => {
      const mine = ++latest.current;
      try {
        const answer = await ask('GET', /** @type {const} */ (`${path}${cursor ? `&cursor=${cursor}` : ''}`));
        if (mine !== latest.current) return;
        const { agents, next = null, total = 0 } = answer;
        setError(undefined);
        setPages((before) => {
          const isSame = before?.path === path;
          if (cursor && isSame) return { path, agents: joined(before.agents, agents), next, total, more: true };
          // Agents loaded by further pages stay below.
          if (isSame && before.more) return { ...before, agents: joined(agents, before.agents), total };
          return { path, agents, next, total, more: false };
        });
      } catch (thrown) {
        if (mine === latest.current) setError(asError(thrown));
      } finally {
        answered.current = Math.max(answered.current, mine);
      }
    },
    [path],
  );
  useEffect(() => {
    load(undefined);
    const isDue = () => document.visibilityState === 'visible' && answered.current === latest.current;
    const timer = setInterval(() => isDue() && load(undefined), everyMs);
    return () => clearInterval(timer);
  }, [path]);
  return { pages, error, stale: pages !== undefined && pages.path !== path, load };
}

/** The broker does not count further (`total` of `GET /owner/agents`). */
const MAX_COUNTED = 10_000;

/** @param {number} total */
export const totalWords = (total) => `${total}${total < MAX_COUNTED ? '' : ' or more'}`;

/** Returns how many agents are on none of the pages. @param {Pages} pages */
export const notShown = ({ total, agents }) =>
  total < MAX_COUNTED ? `${total - agents.length}` : `${Math.max(1, total - agents.length)} or more`;

/** @param {Agent[]} first @param {Agent[]} then */
function joined(first, then) {
  const known = new Set(first.map(({ id }) => id));
  return [...first, ...then.filter(({ id }) => !known.has(id))];
}
