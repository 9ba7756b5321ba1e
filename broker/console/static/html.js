// The template functions of the pages: htm templates that create Preact elements. A value in a template becomes text, never
// HTML; there is no dangerouslySetInnerHTML anywhere.
import htm from '/console/vendor/htm.js';
import { h } from '/console/vendor/preact.js';

export const html = htm.bind(h);

/** @typedef {import('/console/vendor/preact.js').ComponentChildren} Children */
export { createContext, Fragment, render } from '/console/vendor/preact.js';
export {
  useCallback,
  useContext,
  useEffect,
  useErrorBoundary,
  useId,
  useLayoutEffect,
  useMemo,
  useReducer,
  useRef,
  useState,
} from '/console/vendor/preact-hooks.js';

/**
 * Returns the element with this id. Throws when there is none.
 *
 * @param {string} id
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`The page has no element #${id}.`);
  return element;
}
