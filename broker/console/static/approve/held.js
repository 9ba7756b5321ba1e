// The state of the approval page for one held call, and the polling that keeps it current.
/** @typedef {import('../../answers.ts').DecidedCall} DecidedCall */
/** @typedef {import('../../answers.ts').DecidedNow} DecidedNow */
/** @typedef {import('../../answers.ts').HeldCall} HeldCall */
/** @typedef {import('../../answers.ts').Me} SignedIn */
/** @typedef {import('../../answers.ts').WaitingCall} WaitingCall */
import { asError, ask, onOtherOwner, onRoleInDoubt, Refused } from '/console/api.js';
import { useCallback, useEffect, useRef, useState } from '/console/html.js';

const WAITING_MS = 5_000;
const IN_FLIGHT_POLL_MS = 2_000;
/** Timeout of one poll. A phone may lose its connection without noticing: a request without a response must not block the next poll. */
const POLL_TIMEOUT_MS = 10_000;

/** @typedef {SignedIn & { elsewhere: true }} Stranger The viewer is signed in to another organisation. */
/** @typedef {SignedIn & { elsewhere?: undefined, details: HeldCall, mayDecide: boolean, passkeys: boolean }} Owner */
/** The result of a decision made on this page: the held call, or who decided earlier. @typedef {{ now?: Partial<DecidedNow>, first?: string }} Answered */
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

const refused = (/** @type {unknown} */ error) => {
  if (error instanceof Refused) return undefined;
  throw error;
};
/** No session, or one that may not see this. From other refusals, for example by a busy broker, nothing follows about who is signed in. */
const SIGNED_OUT = new Set([401, 403, 404]);
const signedOut = (/** @type {unknown} */ error) => {
  if (error instanceof Refused && !SIGNED_OUT.has(error.status)) throw error;
  return refused(error);
};
/**
 * @template {import('../../answers.ts').Path<'GET'>} P
 * @param {P} path
 */
const quietly = (path, within = {}) => ask('GET', path, undefined, { signIn: false, ...within });

/**
 * Returns who is signed in, what they may see of this call, and whether they have a passkey that can decide: undefined without a session of the
 * call's organisation. Throws when that cannot be found out now.
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
 * Returns who decided earlier, when the error is a refusal that names them.
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
 * `state`: `loading`, `missing`, `failed`, `waiting` (with `held`; `changed` when the request differs from the one first shown; `stale` when the
 * broker does not respond), `over` (with `outcome`, `held` as last seen, and `details` for a signed-in viewer). `me`: null until loaded. `mine`:
 * `approved` or `denied`, while that decision is being made on this page, and after it. `deciding(status, work)` runs the decision, and `answered`
 * is its result; `look()` polls the held call, `lookWho()` reloads who is signed in, `lookAnew()` accepts the current request as the one being
 * reviewed, and clears `changed`.
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
        ? await quietly(/** @type {const} */ (`${path}?known=${known.request_hash}`), { withinMs: POLL_TIMEOUT_MS })
        : await quietly(path);
      if (answer.status === 'pending') {
        // A request that is already known is not sent again: it may be large.
        const { request = known?.request ?? null, ...more } = answer;
        const held = { ...more, request };
        shown.current = held;
        first.current ??= held.request_hash;
        setState({ kind: 'waiting', held, changed: first.current !== held.request_hash });
      } else {
        const details = await quietly(`/owner/approvals/${id}`).catch(refused);
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
        // The call already shown is more useful than an error page.
        if (before.kind === 'waiting') return { ...before, stale: message };
        return before.kind === 'over' ? { ...before } : { kind: 'failed', message };
      });
    }
  };
  // One request after the other, so that an older response cannot replace a newer one.
  const look = useCallback(() => {
    last.current = last.current.then(lookOnce);
    return last.current;
  }, [id]);

  /** Whether the last attempt to find out who is signed in failed: what was known before stays, and the next poll tries again. */
  const inDoubt = useRef(false);
  const lookWho = useCallback(async () => {
    try {
      setMe(await findMe(id));
      inDoubt.current = false;
    } catch {
      setMe((before) => before ?? undefined);
      inDoubt.current = true;
    }
  }, [id]);

  useEffect(() => {
    look();
    lookWho();
    const stops = [onOtherOwner(lookWho), onRoleInDoubt(lookWho)];
    return () => {
      for (const stop of stops) stop();
    };
  }, [id]);

  useEffect(() => {
    const pause =
      state.kind === 'waiting' ? WAITING_MS : state.kind === 'over' && state.underWay ? IN_FLIGHT_POLL_MS : undefined;
    if (pause === undefined) return undefined;
    const seen = () => {
      if (document.visibilityState !== 'visible') return;
      look();
      if (inDoubt.current) lookWho();
    };
    const timer = setTimeout(seen, pause);
    document.addEventListener('visibilitychange', seen);
    return () => {
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', seen);
    };
  }, [state, look, lookWho]);

  const deciding = useCallback(
    async (/** @type {Status} */ status, /** @type {() => Promise<Partial<DecidedNow>>} */ work) => {
      setMine(status);
      try {
        const now = await work();
        setAnswered({ now });
        if (now.status === 'pending') await lookWho();
      } catch (error) {
        setMine(undefined);
        const first = firstOf(error);
        setAnswered(first === undefined ? {} : { first });
        throw error;
      }
      await look();
    },
    [look, lookWho],
  );
  // For a request that changed meanwhile: the current one becomes the one under review.
  const lookAnew = useCallback(() => {
    first.current = undefined;
    // Approvals of the earlier request do not count for this one, also not the one that was given here.
    setAnswered(undefined);
    return Promise.all([look(), lookWho()]);
  }, [look, lookWho]);
  return { state, me, mine, answered, deciding, look, lookAnew, lookWho };
}
