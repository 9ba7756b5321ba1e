import { asError, ask } from '/console/api.js';
import { useCallback, useEffect, useRef, useState } from '/console/html.js';

/**
 * What an address of the owner API answers, asked for again every so often while somebody looks. `answer` is undefined
 * until it came; an error leaves the last answer where it is. An answer that is overtaken is dropped.
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
  // What was asked for before is no answer to this.
  const fits = state.path === path;
  return { answer: fits ? state.answer : undefined, error: state.error, reload };
}
