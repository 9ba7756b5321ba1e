import { asError } from '/console/api.js';
import { html, useEffect, useRef, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';

/** Returns whether the element is no longer shown, as `current`: for what an answer that arrives later does then. */
export function useGone() {
  const gone = useRef(false);
  useEffect(() => {
    gone.current = false;
    return () => {
      gone.current = true;
    };
  }, []);
  return gone;
}

/**
 * The state of an action started by a button: one at a time; its error is shown until the next attempt, or until `clear`, when the refused input is
 * edited. `run` returns whether the action succeeded. `gone`: whether the element that started it is no longer shown, for example a dialog that was
 * closed while the broker was answering: its error is then announced.
 *
 * @returns {{ busy: boolean, problem: Error | undefined, gone: { readonly current: boolean }, run: (work: () => Promise<void>) => Promise<boolean>, clear: () => void }}
 */
export function useDoing() {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(/** @type {Error | undefined} */ (undefined));
  const announce = useAnnounce();
  const gone = useGone();
  const run = async (/** @type {() => Promise<void>} */ work) => {
    if (busy) return false;
    setBusy(true);
    setProblem(undefined);
    try {
      await work();
      return true;
    } catch (error) {
      if (gone.current) announce(asError(error).message, 'bad');
      else setProblem(asError(error));
      return false;
    } finally {
      setBusy(false);
    }
  };
  const clear = () => setProblem(undefined);
  return { busy, problem, gone, run, clear };
}

/** @param {{ problem: Error | undefined }} props */
export const Problem = ({ problem }) =>
  problem ? html`<p class="notice" data-kind="bad" role="alert">${problem.message}</p>` : null;
