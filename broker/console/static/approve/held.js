// What the approval page knows of its held call, and how it keeps knowing it while somebody looks.
/** @typedef {import('../../answers.ts').DecidedCall} DecidedCall */
/** @typedef {import('../../answers.ts').DecidedNow} DecidedNow */
/** @typedef {import('../../answers.ts').HeldCall} HeldCall */
/** @typedef {import('../../answers.ts').Me} SignedIn */
/** @typedef {import('../../answers.ts').WaitingCall} WaitingCall */
import { asError, ask, Refused } from '/console/api.js';
import { useCallback, useEffect, useRef, useState } from '/console/html.js';

const WAITING_MS = 5_000;
const UNDER_WAY_MS = 2_000;
/** A phone may lose its connection without noticing: a question without an answer must not keep the next one waiting. */
const LOOK_MS = 10_000;

/** @typedef {SignedIn & { elsewhere: true }} Stranger Somebody who is signed in to another organisation. */
/** @typedef {SignedIn & { elsewhere?: undefined, details: HeldCall, mayDecide: boolean, passkeys: boolean }} Owner */
/** What a decision on this page brought: the held call, or who was first. @typedef {{ now?: Partial<DecidedNow>, first?: string }} Answered */
/** @typedef {Stranger | Owner} Me */
/** @typedef {Omit<WaitingCall, 'request'> & { request: HeldCall['request'] }} Waits */
/** @typedef {{ kind: 'waiting', held: Waits, changed: boolean, stale?: string }} WaitingState */
/**
 * @typedef {object} OverState
 * @property {'over'} kind
 * @property {DecidedCall} outcome
 * @property {HeldCall | undefined} details
 * @property {Waits | undefined} held
 * @property {boolean} underWay
 */
/** @typedef {{ kind: 'loading' | 'missing' } | { kind: 'failed', message: string } | WaitingState | OverState} State */
/** @typedef {'approved' | 'denied'} Status */
/** @typedef {ReturnType<typeof useHeld>} Held */

const signedOut = (/** @type {unknown} */ error) => {
  if (error instanceof Refused) return undefined;
  throw error;
};
/**
 * @template {import('../../answers.ts').Path<'GET'>} P
 * @param {P} path
 */
const quietly = (path, within = {}) => ask('GET', path, undefined, { signIn: false, ...within });

/**
 * Who is signed in here, with what they may see of this call, and whether they have a passkey that can decide: undefined without a session of its organisation.
 *
 * @param {string} id
 * @returns {Promise<Me | undefined>}
 */
async function findMe(id) {
  const me = await quietly('/owner/me').catch(signedOut);
  if (!me) return undefined;
  const details = await quietly(`/owner/approvals/${id}`).catch(signedOut);
  if (!details) return { ...me, elsewhere: true };
  const having = await quietly('/owner/passkeys').catch(signedOut);
  const passkeys = having?.passkeys.some(({ status, discoverable }) => status === 'active' && discoverable !== false);
  return { ...me, details, mayDecide: me.role !== 'viewer', passkeys: passkeys ?? false };
}

/**
 * Who decided before, of a refusal that says so.
 *
 * @param {unknown} error
 * @returns {string | undefined}
 */
function firstOf(error) {
  const refused = error instanceof Error && error.cause instanceof Refused ? error.cause : error;
  const by = refused instanceof Refused && 'decided_by_email' in refused.answer && refused.answer.decided_by_email;
  return typeof by === 'string' ? by : undefined;
}

const isUnderWay = (/** @type {DecidedCall} */ { status, executed_at, execution_error }) =>
  status === 'approved' && executed_at === null && execution_error === null;

/**
 * `state`: `loading`, `missing`, `failed`, `waiting` (with `held`; `changed` when it is another request than at first; `stale`
 * when the broker does not answer), `over` (with `outcome`, `held` as it
 * was last seen, and `details` for whoever is signed in). `me`: null until it is
 * known. `mine`: `approved` or `denied`, when that is being done here, or was. `deciding(status, work)` does it, and `answered`
 * is what that brought; `look()` looks again, `lookWho()` at who is signed in, `lookAnew()` takes the request for the one that is being looked at, whatever was there before.
 *
 * @param {string} id
 */
export function useHeld(id) {
  const [state, setState] = useState(/** @type {State} */ ({ kind: 'loading' }));
  const [me, setMe] = useState(/** @type {Me | null | undefined} */ (null));
  const [mine, setMine] = useState(/** @type {Status | undefined} */ (undefined));
  const [answered, setAnswered] = useState(/** @type {Answered | undefined} */ (undefined));
  const first = useRef(/** @type {string | undefined} */ (undefined));
  const shown = useRef(/** @type {Waits | undefined} */ (undefined));
  const last = useRef(Promise.resolve());

  const lookOnce = async () => {
    try {
      const known = shown.current;
      const path = /** @type {const} */ (`/approve/${id}/request`);
      const answer = known
        ? await quietly(/** @type {const} */ (`${path}?known=${known.request_hash}`), { withinMs: LOOK_MS })
        : await quietly(path);
      if (answer.status === 'pending') {
        // What is known already is not sent again: it may be large.
        const { request = known?.request ?? null, ...more } = answer;
        const held = { ...more, request };
        shown.current = held;
        first.current ??= held.request_hash;
        setState({ kind: 'waiting', held, changed: first.current !== held.request_hash });
      } else {
        const details = await quietly(`/owner/approvals/${id}`).catch(signedOut);
        setState((before) => ({
          kind: 'over',
          outcome: answer,
          details,
          held: 'held' in before ? before.held : undefined,
          underWay: isUnderWay(answer),
        }));
      }
    } catch (error) {
      setState((before) => {
        if (error instanceof Refused && error.status === 404) return { kind: 'missing' };
        const { message } = asError(error);
        // What stands here already is worth more than the news that there is no news.
        if (before.kind === 'waiting') return { ...before, stale: message };
        return before.kind === 'over' ? { ...before } : { kind: 'failed', message };
      });
    }
  };
  // One after the other: an older answer must not come after a newer one.
  const look = useCallback(() => {
    last.current = last.current.then(lookOnce);
    return last.current;
  }, [id]);

  const lookWho = useCallback(() => findMe(id).then(setMe, () => setMe(undefined)), [id]);

  useEffect(() => {
    look();
    lookWho();
  }, [id]);

  useEffect(() => {
    const pause =
      state.kind === 'waiting' ? WAITING_MS : state.kind === 'over' && state.underWay ? UNDER_WAY_MS : undefined;
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
    async (/** @type {Status} */ status, /** @type {() => Promise<Partial<DecidedNow>>} */ work) => {
      setMine(status);
      try {
        setAnswered({ now: await work() });
      } catch (error) {
        setMine(undefined);
        const first = firstOf(error);
        setAnswered(first === undefined ? {} : { first });
        throw error;
      }
      await look();
    },
    [look],
  );
  // What was looked at last is looked at again: for a request that changed meanwhile.
  const lookAnew = useCallback(() => {
    first.current = undefined;
    return look();
  }, [look]);
  return { state, me, mine, answered, deciding, look, lookAnew, lookWho };
}
