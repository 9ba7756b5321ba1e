// Stores the page to return to after sign-in, for this tab only.
const KEY = 'svc-place';
const UNDONE = 'svc-undone';
const OURS = /^\/(console|approve|oauth\/consent)(\/|$)/;

/** Whether this page is about to navigate to sign-in. */
let signingIn = false;
export const isSigningIn = () => signingIn;

/** Stores the address of this page. `undone`: what the person just did was refused, because the session has ended. */
export function keepPlace({ undone = false } = {}) {
  signingIn = true;
  sessionStorage.setItem(KEY, location.pathname + location.search);
  if (undone) sessionStorage.setItem(UNDONE, 'yes');
}

/** Stores the page that the address of the sign-in page names, after a sign-in at the identity provider that failed. */
export function keepNamedPlace() {
  const named = new URLSearchParams(location.search).get('page');
  if (named !== null) sessionStorage.setItem(KEY, named);
}

/** Removes the note that something was refused, and returns whether there was one. */
export function takeUndone() {
  const undone = sessionStorage.getItem(UNDONE) !== null;
  sessionStorage.removeItem(UNDONE);
  return undone;
}

/** Returns the stored address: a path of a console page on this origin, otherwise the console. */
export const findPlace = () => placeIn(sessionStorage.getItem(KEY)) ?? '/console';

/** Removes the stored address, when a page was reached. */
export const forgetPlace = () => sessionStorage.removeItem(KEY);

/** Removes and returns the stored address, as `findPlace`. */
export function takePlace() {
  const place = findPlace();
  forgetPlace();
  return place;
}

/** @param {string | null} text */
function placeIn(text) {
  if (!text || !URL.canParse(text, location.origin)) return undefined;
  const { origin, pathname, search } = new URL(text, location.origin);
  const ours = origin === location.origin && OURS.test(pathname) && !pathname.startsWith('/console/sign-in');
  return ours ? pathname + search : undefined;
}
