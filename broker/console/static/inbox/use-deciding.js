// Deciding on what is open: only what is on the screen, and only when all of it was seen. A platform may take its time to
// answer an approved call; meanwhile others can be looked at and decided.
import { useRef, useState } from '/console/html.js';
import { approveByPasskey, decide } from '/console/inbox/decide.js';
import { idOf } from '/console/inbox/entries.js';
import { useAnnounce } from '/console/shell/announce.js';

const CHANGED = 'The request is no longer the one that you looked at. Look again before you decide.';

/** `open`: the entry that is. `done(key)` is called when it was decided. */
export function useDeciding({ open, settle, reload, done }) {
  const announce = useAnnounce();
  /** What is under way, by the key of its entry. */
  const [busy, setBusy] = useState(/** @type {Record<string, any>} */ ({}));
  /** Read anew when the request is not what was shown. */
  const [version, setVersion] = useState(0);
  /** `{ subject, seen, word }`, or nothing while there is nothing to decide on. */
  const onScreen = useRef(undefined);

  const ready = (what) => {
    const { subject, seen } = onScreen.current ?? {};
    const isOpen = subject !== undefined && open !== undefined && idOf(open.kind, subject) === open.id;
    return isOpen && !busy[open.key] && (what === 'deny' || seen);
  };

  /** `what`: approve, passkey or deny. */
  const act = async (what, note) => {
    if (!ready(what)) return;
    const entry = open;
    const { subject, word } = onScreen.current;
    setBusy((before) => ({ ...before, [entry.key]: what }));
    try {
      const { became, late, changed } = await say(entry, what, { subject, word, note });
      if (changed) {
        announce(CHANGED, 'bad');
        setVersion((before) => before + 1);
      } else {
        settle(entry.key, became);
        // It stands in the card, too: here it is for whoever listens.
        announce(late ? `${late} ${became.words}` : became.words, late ? 'wait' : 'good');
        done(entry.key);
      }
    } catch (failure) {
      announce(failure.message, failure.cancelled ? 'wait' : 'bad');
      // Something else is no longer as it was shown, such as a name that is taken by now.
      if (failure.code === 'conflict' || failure.code === 'invalid_request') setVersion((before) => before + 1);
    } finally {
      setBusy(({ [String(entry.key)]: _, ...others }) => others);
      reload();
    }
  };

  const shown = (now) => {
    onScreen.current = now;
  };
  return { act, busy, version, shown, ready, word: () => onScreen.current?.word };
}

function say(entry, what, { subject, word, note }) {
  if (what === 'passkey') return approveByPasskey(entry, subject.request_hash);
  const hash = subject.request_hash && { request_hash: subject.request_hash };
  return decide(entry, what, { ...(what === 'approve' ? word : hash), ...(note && { note }) });
}
