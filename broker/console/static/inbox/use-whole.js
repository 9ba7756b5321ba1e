/** @typedef {import('/console/inbox/decide.js').Kind} Kind */
/** @typedef {import('/console/inbox/decide.js').Wholes} Wholes */
/** @typedef {import('/console/inbox/decide.js').Word} Word */
/** @typedef {import('/console/inbox/entries.js').HearShown} HearShown */
import { asError } from '/console/api.js';
import { useCallback, useEffect, useLayoutEffect, useState } from '/console/html.js';
import { find } from '/console/inbox/decide.js';

/**
 * Reads the complete item of an opened entry; again when `version` changes.
 *
 * @template {Kind} K
 * @param {{ kind: K, id: string }} entry
 * @param {number} version
 */
export function useWhole({ kind, id }, version) {
  const [whole, setWhole] = useState(/** @type {Wholes[K] | undefined} */ (undefined));
  const [error, setError] = useState(/** @type {Error | undefined} */ (undefined));
  const load = useCallback(() => {
    setError(undefined);
    find({ kind, id }).then(
      (found) => setWhole(() => found),
      (thrown) => setError(asError(thrown)),
    );
  }, [kind, id]);
  useEffect(load, [load, version]);
  return { whole, error, load };
}

/**
 * Reports to the deciding component what is on the screen: `subject`, whether all of it was `seen`, and the decision's body `word`.
 *
 * @param {HearShown} shown
 * @param {Wholes[Kind] | undefined} subject
 * @param {boolean} seen
 * @param {Word | undefined} word
 */
export function useShown(shown, subject, seen, word) {
  // Before the browser paints: a key press must decide what is visible now, not what was visible before.
  useLayoutEffect(() => {
    shown(subject && { subject, seen, word });
    return () => shown(undefined);
  }, [subject, seen, JSON.stringify(word)]);
}
