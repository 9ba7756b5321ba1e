// Decides the open entry: only the request on the screen, and only when all of it was seen. A platform may respond slowly to
// an approved call; meanwhile other entries can be opened and decided.
/** @typedef {import('/console/inbox/entries.js').Act} Act */
/** @typedef {import('/console/inbox/entries.js').Entry} Entry */
/** @typedef {import('/console/inbox/entries.js').HearShown} HearShown */
/** @typedef {import('/console/inbox/entries.js').Shown} Shown */
/** @typedef {import('/console/inbox/entry-text.js').Outcome} Outcome */
/** @typedef {import('../../answers.ts').StandingBody} StandingBody */
import { asError, Refused } from '/console/api.js';
import { useRef, useState } from '/console/html.js';
import { approveWithStanding, decide, decideCallByPasskey } from '/console/inbox/decide.js';
import { idOf } from '/console/inbox/entries.js';
import { wasCancelled } from '/console/passkeys/ceremony.js';
import { useAnnounce } from '/console/shell/announce.js';

const CHANGED = 'The request has changed since you opened it. Look again before you decide.';

const denies = (/** @type {Act} */ what) => what === 'deny' || what === 'deny-passkey';

/**
 * @typedef {object} Deciding
 * @property {Entry | undefined} open
 * @property {(key: string, outcome: Outcome) => void} settle
 * @property {() => void} reload
 * @property {(key: string) => void} done
 */

/**
 * `open`: the open entry. `done(key)` is called when an entry was decided.
 *
 * @param {Deciding} deciding
 */
export function useDeciding({ open, settle, reload, done }) {
  const announce = useAnnounce();
  /** Actions in flight, by the key of their entry. */
  const [busy, setBusy] = useState(/** @type {Record<string, Act>} */ ({}));
  /** Incremented to read the entry again when its request is no longer the shown one. */
  const [version, setVersion] = useState(0);
  /** Notes of decisions that failed, by the key of their entry: the next confirmation begins with them. */
  const notes = useRef(/** @type {Map<string, string>} */ (new Map()));
  /** Their standing approvals, too. */
  const terms = useRef(/** @type {Map<string, StandingBody>} */ (new Map()));
  const keep = (/** @type {string} */ key, /** @type {string} */ note) => notes.current.set(key, note);
  /** `{ subject, seen, word }`, or undefined while there is nothing to decide. */
  const onScreen = useRef(/** @type {Shown | undefined} */ (undefined));

  /** Returns the shown item of the open entry, if it may be decided now. */
  const ready = (/** @type {Act} */ what) => {
    const now = onScreen.current;
    if (!now || !open || idOf(now.subject) !== open.id || busy[open.key]) return undefined;
    return denies(what) || now.seen ? { entry: open, now } : undefined;
  };

  /** @type {(what: Act, note?: string, standing?: StandingBody) => Promise<void>} */
  const act = async (what, note, standing) => {
    const begun = ready(what);
    if (!begun) return;
    const { entry, now } = begun;
    setBusy((before) => ({ ...before, [entry.key]: what }));
    keep(entry.key, note ?? '');
    // A denial says nothing about the terms of an approval that failed before it.
    if (standing) terms.current.set(entry.key, standing);
    else if (what === 'approve') terms.current.delete(entry.key);
    try {
      const decided = await say(entry, what, now, note, standing);
      if (decided.changed) {
        announce(CHANGED, 'bad');
        setVersion((before) => before + 1);
      } else {
        const { outcome, late } = decided;
        keep(entry.key, '');
        terms.current.delete(entry.key);
        if (outcome.waits) setVersion((before) => before + 1);
        else settle(entry.key, outcome);
        // The card shows the outcome, too; this announcement is for screen readers.
        announce(
          late ? `${late} ${outcome.words}` : outcome.words,
          late ? 'wait' : denies(what) ? 'good' : outcome.kind,
        );
        if (!outcome.waits) done(entry.key);
      }
    } catch (failure) {
      announce(asError(failure).message, wasCancelled(failure) ? 'wait' : 'bad');
      // Something other than the request changed, such as a name that is taken by now.
      if (failure instanceof Refused && ['conflict', 'invalid_request'].includes(failure.code ?? ''))
        setVersion((before) => before + 1);
    } finally {
      setBusy(({ [entry.key]: _, ...others }) => others);
      reload();
    }
  };

  /** @type {HearShown} */
  const shown = (now) => {
    onScreen.current = now;
  };
  /** Returns the scopes that an approval of the shown item would grant. */
  const scopes = () => {
    const word = onScreen.current?.word;
    return word && 'scopes' in word ? word.scopes : undefined;
  };
  /** Returns the held call on the screen, if the shown item is one. */
  const held = () => {
    const subject = onScreen.current?.subject;
    return subject && 'approval_id' in subject ? subject : undefined;
  };
  const unsent = (/** @type {string} */ key) => notes.current.get(key);
  const unsentTerms = (/** @type {string} */ key) => terms.current.get(key);
  return { act, busy, version, shown, ready, scopes, held, keep, unsent, unsentTerms };
}

/**
 * @param {Entry} entry
 * @param {Act} what
 * @param {Shown} now
 * @param {string | undefined} note
 * @param {StandingBody | undefined} standing
 */
async function say(entry, what, { subject, word }, note, standing) {
  const hash = 'request_hash' in subject ? { request_hash: subject.request_hash } : undefined;
  if (what === 'passkey' || what === 'deny-passkey') {
    if (entry.kind !== 'approval' || !hash) throw new Error('Only held calls are decided by passkey.');
    return await decideCallByPasskey(entry, what === 'passkey' ? 'approve' : 'deny', hash.request_hash, note);
  }
  if (standing && entry.kind === 'approval' && hash)
    return await approveWithStanding(entry, hash.request_hash, standing, note);
  return await decide(entry, what, { ...(what === 'approve' ? word : hash), ...(note && { note }) });
}
