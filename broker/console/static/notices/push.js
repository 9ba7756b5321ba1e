// Web Push on this device: browser support, current state, turning it on and off.
/** @typedef {import('../../answers.ts').PushDevice} PushDevice */
import { ask } from '/console/api.js';

const WORKER = '/console/worker.js';
const SCOPE = '/console';

const isApplePhone = () =>
  /iPhone|iPad/.test(navigator.userAgent) || (/Macintosh/.test(navigator.userAgent) && navigator.maxTouchPoints > 1);
const isInstalled = () => matchMedia('(display-mode: standalone)').matches;

/** Returns why this browser cannot receive push messages, for a person; undefined when it can. */
export function withoutPush() {
  if (!isSecureContext)
    return 'Push notices need https, or localhost. Open the console with https: see “Reach it from your phone”.';
  if (isApplePhone() && !isInstalled())
    return 'On an iPhone or iPad it works from the home screen: press Share, then “Add to Home Screen”, open Agent Broker from there, and come back to this page.';
  if (!('serviceWorker' in navigator && 'PushManager' in window && 'Notification' in window))
    return 'This browser does not support push notices. Try a current Chrome, Edge, Firefox or Safari, not in a private window.';
  if (Notification.permission === 'denied')
    return 'The browser does not let this page show notices. Allow them in its settings for this site (the icon before the address), and reload.';
  return undefined;
}

/** Returns the broker's identifier of an endpoint. @param {string} endpoint */
async function hashOf(endpoint) {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(endpoint));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

const registered = () => navigator.serviceWorker.getRegistration(SCOPE);

/** Returns the broker's identifier of this browser's subscription; undefined when there is none. */
export async function ownHash() {
  const subscription = withoutPush() ? undefined : await (await registered())?.pushManager.getSubscription();
  return subscription ? await hashOf(subscription.endpoint) : undefined;
}

/** Whether the subscription uses this key: a browser that subscribed to another broker at this address has to subscribe again. */
function isOf(/** @type {PushSubscription} */ subscription, /** @type {string} */ key) {
  const bytes = new Uint8Array(subscription.options.applicationServerKey ?? new ArrayBuffer(0));
  const text = btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
  return text === key;
}

/**
 * Turns push on. Must be called in a click handler, since it asks for permission. Throws an error with a message for a person when the browser
 * refuses.
 *
 * @param {string} key the broker's public key
 * @param {string} name the device's name
 */
export async function turnOn(key, name) {
  if ((await Notification.requestPermission()) !== 'granted')
    throw new Error(
      withoutPush() ?? 'You did not allow notices. Press the button again, and choose “Allow” when the browser asks.',
    );
  await navigator.serviceWorker.register(WORKER, { scope: SCOPE });
  const worker = await navigator.serviceWorker.ready;
  const known = await worker.pushManager.getSubscription();
  if (known && !isOf(known, key)) await known.unsubscribe();
  const made = await worker.pushManager
    .subscribe({ userVisibleOnly: true, applicationServerKey: key })
    .catch((/** @type {Error} */ error) => {
      throw new Error(`The browser could not reach its push service, or has none: ${error.message}`);
    });
  const { endpoint = '', keys = {} } = made.toJSON();
  const { p256dh = '', auth = '' } = keys;
  return await ask('POST', '/owner/push-subscriptions', { endpoint, keys: { p256dh, auth }, device_name: name });
}

/** Turns push off in this browser. */
export async function turnOff() {
  await (await (await registered())?.pushManager.getSubscription())?.unsubscribe();
}

/** Calls `hear` with the path of a clicked notice, while a window of the console is open. @param {(path: string) => void} hear */
export function onNoticeClick(hear) {
  navigator.serviceWorker?.addEventListener('message', ({ data }) => {
    if (typeof data?.open === 'string') hear(data.open);
  });
}
