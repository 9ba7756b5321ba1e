// Where somebody wanted to go before signing in came in between. Kept for this tab only.
const KEY = 'svc-place';
const OURS = /^\/(console|approve|oauth\/consent)(\/|$)/;

/** Whether this page is about to lead to signing in. */
let signingIn = false;
export const isSigningIn = () => signingIn;

/** Keeps where this page is. */
export function keepPlace() {
  signingIn = true;
  sessionStorage.setItem(KEY, location.pathname + location.search);
}

/** Takes what was kept: a path of this origin that is a page of ours, else the console. */
export function takePlace() {
  const kept = sessionStorage.getItem(KEY);
  sessionStorage.removeItem(KEY);
  return placeIn(kept) ?? '/console';
}

/** @param {string | null} text */
function placeIn(text) {
  if (!text || !URL.canParse(text, location.origin)) return undefined;
  const { origin, pathname, search } = new URL(text, location.origin);
  const ours = origin === location.origin && OURS.test(pathname) && !pathname.startsWith('/console/sign-in');
  return ours ? pathname + search : undefined;
}
