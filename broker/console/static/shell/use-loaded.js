import { asError, ask } from '/console/api.js';
import { useCallback, useEffect, useRef, useState } from '/console/html.js';

/**
 * Polls an address of the owner API while the page is visible. `answer` is undefined until the first response; an error keeps the last answer. A
 * response that a newer request overtook is dropped.
 *
 * @template {import('../../answers.ts').Path<'GET'>} P
 * @param {P} path
 * @param {number} everyMs
 */
export function useLoaded(path, everyMs) {
  const [state, setState] = useState(
    /** @type {{ path?: P, answer?: import('../../answers.ts').Answer<'GET', P>, error?: Error }} */ ({}),
  );
  const latest = useRef(0);
  const reload = useCallback(async () => {
    const mine = ++latest.current;
    try {
      const answer = await ask('GET', path);
      if (mine === latest.current) setState({ path, answer });
    } catch (error) {
      if (mine === latest.current) setState((before) => ({ ...before, error: asError(error) }));
    }
  }, [path]);
  useEffect(() => {
    reload();
    const timer = setInterval(() => document.visibilityState === 'visible' && reload(), everyMs);
    return () => clearInterval(timer);
  }, [path]);
  // The previous address's response does not belong to this path.
  const fits = state.path === path;
  return { answer: fits ? state.answer : undefined, error: state.error, reload };
}
