// What the approval page knows of its held call, and how it keeps knowing it while somebody looks.
import { ask, Refused } from '/console/api.js';
import { useCallback, useEffect, useRef, useState } from '/console/html.js';

const WAITING_MS = 5_000;
const UNDER_WAY_MS = 2_000;

const signedOut = (error) => {
  if (error instanceof Refused) return undefined;
  throw error;
};
const quietly = (path) => ask('GET', path, undefined, { signIn: false });

/** Who is signed in here, with what they may see of this call: undefined without a session of its organisation. */
async function findMe(id) {
  const me = await quietly('/owner/me').catch(signedOut);
  if (!me) return undefined;
  const details = await quietly(`/owner/approvals/${id}`).catch(signedOut);
  if (!details) return { ...me, elsewhere: true };
  return { ...me, details, isOwner: details.agent.owned_by_me, mayDecide: me.role !== 'viewer' };
}

const isUnderWay = ({ status, executed_at, execution_error }) =>
  status === 'approved' && executed_at === null && execution_error === null;

/**
 * `state`: `loading`, `missing`, `failed`, `waiting` (with `held`; `changed` when it is another request than at first; `stale`
 * when the broker does not answer), `over` (with `outcome`, `held` as it
 * was last seen, and `details` for whoever is signed in). `me`: null until it is
 * known. `mine`: `approved` or `denied`, when that is being done here, or was. `deciding(status, work)` does it; `look()` looks
 * again, `lookAnew()` takes the request for the one that is being looked at, whatever was there before.
 */
export function useHeld(id) {
  const [state, setState] = useState(/** @type {{ kind: string, [more: string]: any }} */ ({ kind: 'loading' }));
  const [me, setMe] = useState(null);
  const [mine, setMine] = useState();
  const first = useRef(undefined);
  const shown = useRef(undefined);
  const last = useRef(Promise.resolve());

  const lookOnce = async () => {
    try {
      const known = shown.current && `?known=${shown.current.request_hash}`;
      const answer = await quietly(`/approve/${id}/request${known ?? ''}`);
      if (answer.status === 'pending') {
        // What is known already is not sent again: it may be large.
        const held = 'request' in answer ? answer : { ...answer, request: shown.current.request };
        shown.current = held;
        first.current ??= held.request_hash;
        setState({ kind: 'waiting', held, changed: first.current !== held.request_hash });
      } else {
        const details = await quietly(`/owner/approvals/${id}`).catch(signedOut);
        setState(({ held }) => ({ kind: 'over', outcome: answer, details, held, underWay: isUnderWay(answer) }));
      }
    } catch (error) {
      setState((before) => {
        if (error.status === 404) return { kind: 'missing' };
        // What stands here already is worth more than the news that there is no news.
        if (before.kind === 'waiting') return { ...before, stale: error.message };
        return before.kind === 'over' ? { ...before } : { kind: 'failed', message: error.message };
      });
    }
  };
  // One after the other: an older answer must not come after a newer one.
  const look = useCallback(() => {
    last.current = last.current.then(lookOnce);
    return last.current;
  }, [id]);

  useEffect(() => {
    look();
    findMe(id).then(setMe, () => setMe(undefined));
  }, [id]);

  useEffect(() => {
    const pause = state.kind === 'waiting' ? WAITING_MS : state.underWay ? UNDER_WAY_MS : undefined;
    if (pause === undefined) return undefined;
    const seen = () => document.visibilityState === 'visible' && look();
    const timer = setTimeout(seen, pause);
    document.addEventListener('visibilitychange', seen);
    return () => {
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', seen);
    };
  }, [state, look]);

  const deciding = useCallback(
    async (status, work) => {
      setMine(status);
      try {
        await work();
      } catch (error) {
        setMine(undefined);
        throw error;
      }
      await look();
    },
    [look],
  );
  // What was looked at last is looked at anew: for a request that changed meanwhile.
  const lookAnew = useCallback(() => {
    first.current = undefined;
    return look();
  }, [look]);
  return { state, me, mine, deciding, look, lookAnew };
}
