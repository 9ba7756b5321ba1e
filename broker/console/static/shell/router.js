// Pages have real addresses: each can be opened, reloaded and shared.
/** @typedef {import('/console/html.js').Children} Children */
import { html, useEffect, useLayoutEffect, useRef, useState } from '/console/html.js';
import { isSigningIn } from '/console/place.js';

const MOVED = 'svc-moved';

/** Asks whoever has written something whether to go; undefined: nobody has. @type {((go: () => void) => void) | undefined} */
let asks;

/**
 * While `active`, leaving the page asks: within the console by `ask`, which calls `go` to leave; otherwise the browser does.
 *
 * @param {boolean} active
 * @param {(go: () => void) => void} ask
 */
export function useLeaving(active, ask) {
  const latest = useRef(ask);
  latest.current = ask;
  // As soon as it is drawn: who steps back at once is asked, too.
  useLayoutEffect(() => {
    if (!active) return;
    const mine = (/** @type {() => void} */ go) => latest.current(go);
    asks = mine;
    const unloading = (/** @type {Event} */ event) => isSigningIn() || event.preventDefault();
    addEventListener('beforeunload', unloading);
    return () => {
      if (asks === mine) asks = undefined;
      removeEventListener('beforeunload', unloading);
    };
  }, [active]);
}

/**
 * Goes to an address of the console without loading anything again; `replace` leaves no step to go back to; `sure`: asks nobody.
 *
 * @param {string} to
 */
export function navigate(to, { replace = false, sure = false } = {}) {
  if (asks && !sure) return asks(() => navigate(to, { replace, sure: true }));
  // Whoever said yes is asked no more, though the page is there until the next one is drawn.
  if (sure) asks = undefined;
  if (replace) history.replaceState(null, '', to);
  else history.pushState(null, '', to);
  dispatchEvent(new Event(MOVED));
  if (!replace) scrollTo(0, 0);
}

/** Where we are: a URL that is new whenever it changed. */
export function usePlace() {
  const [place, setPlace] = useState(() => new URL(location.href));
  useEffect(() => {
    let here = location.href;
    const moved = (/** @type {Event} */ event) => {
      const wanted = location.href;
      if (event.type === 'popstate' && asks) {
        history.pushState(null, '', here);
        return asks(() => navigate(wanted, { sure: true }));
      }
      here = wanted;
      setPlace(new URL(wanted));
    };
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
  };
  return html`<a href=${to} onClick=${follow} ...${more}>${children}</a>`;
}
