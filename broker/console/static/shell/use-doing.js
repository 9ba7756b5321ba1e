import { asError } from '/console/api.js';
import { html, useState } from '/console/html.js';

/**
 * The state of an action started by a button: one at a time; its error is shown until the next attempt, or until `clear`, when the refused input is
 * edited. `run` returns whether the action succeeded.
 *
 * @returns {{ busy: boolean, problem: Error | undefined, run: (work: () => Promise<void>) => Promise<boolean>, clear: () => void }}
 */
export function useDoing() {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(/** @type {Error | undefined} */ (undefined));
  const run = async (/** @type {() => Promise<void>} */ work) => {
    if (busy) return false;
    setBusy(true);
    setProblem(undefined);
    try {
      await work();
      return true;
    } catch (error) {
      setProblem(asError(error));
      return false;
    } finally {
      setBusy(false);
    }
  };
  const clear = () => setProblem(undefined);
  return { busy, problem, run, clear };
}

/** @param {{ problem: Error | undefined }} props */
export const Problem = ({ problem }) =>
  problem ? html`<p class="notice" data-kind="bad" role="alert">${problem.message}</p>` : null;
