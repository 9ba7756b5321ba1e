// What a page loads, and what it shows until then, when that failed, and when there is nothing.
/** @typedef {import('/console/html.js').Children} Children */
import { asError, ask } from '/console/api.js';
import { html, useCallback, useEffect, useRef, useState } from '/console/html.js';

/**
 * Polls an address of the owner API while the page is visible. `answer` is undefined until the first response; an error keeps the last answer. A
 * response that a newer request overtook is dropped; polling therefore waits for the response to the last request.
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
  const answered = useRef(0);
  const reload = useCallback(async () => {
    const mine = ++latest.current;
    try {
      const answer = await ask('GET', path);
      if (mine === latest.current) setState({ path, answer });
    } catch (error) {
      if (mine === latest.current) setState((before) => ({ ...before, error: asError(error) }));
    } finally {
      answered.current = Math.max(answered.current, mine);
    }
  }, [path]);
  useEffect(() => {
    reload();
    const isDue = () => document.visibilityState === 'visible' && answered.current === latest.current;
    const timer = setInterval(() => isDue() && reload(), everyMs);
    return () => clearInterval(timer);
  }, [path]);
  // The previous address's response does not belong to this path.
  const fits = state.path === path;
  return { answer: fits ? state.answer : undefined, error: state.error, reload };
}

/**
 * An empty state: says what will be here, and what to do next.
 *
 * @param {{ title: string, children: Children }} props
 */
export const Empty = ({ title, children }) => html`
  <div class="sheet empty">
    <h2>${title}</h2>
    ${children}
  </div>
`;

/** Shown until the first response arrives. */
export const Loading = () => html`<div class="loading" aria-busy="true"><span class="unseen">Loading…</span></div>`;

/**
 * Shown when loading failed.
 *
 * @param {{ error: Error, again: () => void }} props
 */
export const Failed = ({ error, again }) => html`
  <div class="notice" data-kind="bad" role="alert">
    <span>${error.message}</span>
    <button type="button" class="compact" onClick=${again}>Try again</button>
  </div>
`;
