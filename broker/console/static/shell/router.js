// Pages have real addresses: each can be opened, reloaded and shared.
/** @typedef {import('/console/html.js').Children} Children */
import { html, useEffect, useState } from '/console/html.js';

const MOVED = 'svc-moved';

/**
 * Goes to an address of the console without loading anything again; `replace` leaves no step to go back to.
 *
 * @param {string} to
 */
export function navigate(to, { replace = false } = {}) {
  if (replace) history.replaceState(null, '', to);
  else history.pushState(null, '', to);
  dispatchEvent(new Event(MOVED));
}

/** Where we are: a URL that is new whenever it changed. */
export function usePlace() {
  const [place, setPlace] = useState(() => new URL(location.href));
  useEffect(() => {
    const moved = () => setPlace(new URL(location.href));
    for (const sign of ['popstate', MOVED]) addEventListener(sign, moved);
    return () => {
      for (const sign of ['popstate', MOVED]) removeEventListener(sign, moved);
    };
  }, []);
  return place;
}

/**
 * A link within the console. With a modifier key the browser follows it.
 *
 * @param {{ to: string, children: Children }} props
 */
export function Link({ to, children, ...more }) {
  const follow = (/** @type {MouseEvent} */ event) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(to);
    scrollTo(0, 0);
  };
  return html`<a href=${to} onClick=${follow} ...${more}>${children}</a>`;
}
