// Client-side routing: pages have real addresses, which can be opened, reloaded and shared.
/** @typedef {import('/console/html.js').Children} Children */
import { html, useEffect, useLayoutEffect, useRef, useState } from '/console/html.js';
import { isSigningIn } from '/console/place.js';

const MOVED = 'svc-moved';

/** Asks whether to leave a page with unsaved changes; undefined when there are none. @type {((go: () => void) => void) | undefined} */
let asks;

/**
 * While `active`, leaving the page needs a confirmation: within the console by `ask`, which calls `go` to leave; otherwise by the browser.
 *
 * @param {boolean} active
 * @param {(go: () => void) => void} ask
 */
export function useLeaving(active, ask) {
  const latest = useRef(ask);
  latest.current = ask;
  // In the layout effect, so that Back pressed immediately after the render asks, too.
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
 * Navigates within the console without reloading; `replace` adds no history entry; `sure` skips the confirmation.
 *
 * @param {string} to
 */
export function navigate(to, { replace = false, sure = false } = {}) {
  if (asks && !sure) return asks(() => navigate(to, { replace, sure: true }));
  // After a confirmation the question is not asked again, although the page stays until the next one is rendered.
  if (sure) asks = undefined;
  if (replace) history.replaceState(null, '', to);
  else history.pushState(null, '', to);
  dispatchEvent(new Event(MOVED));
  if (!replace) scrollTo(0, 0);
}

/** Returns the current address, as a new URL object after each change. */
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
 * A link within the console. With a modifier key the browser handles it.
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
