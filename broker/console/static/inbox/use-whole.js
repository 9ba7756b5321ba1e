import { useCallback, useEffect, useLayoutEffect, useState } from '/console/html.js';
import { find } from '/console/inbox/decide.js';

/** All of an entry that was opened; read anew when `version` changes. */
export function useWhole({ kind, id }, version) {
  const [whole, setWhole] = useState(undefined);
  const [error, setError] = useState(undefined);
  const load = useCallback(() => {
    setError(undefined);
    find({ kind, id }).then(setWhole, setError);
  }, [kind, id]);
  useEffect(load, [load, version]);
  return { whole, error, load };
}

/** Tells whoever decides what is on the screen: `subject`, whether all of it was `seen`, and the `word` that goes along. */
export function useShown(shown, subject, seen, word) {
  // Before the browser paints: a key must decide on what is there to be seen, and not on what was there before.
  useLayoutEffect(() => {
    shown(subject && { subject, seen, word });
    return () => shown(undefined);
  }, [subject, seen, JSON.stringify(word)]);
}
