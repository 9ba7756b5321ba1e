// The service worker of the console: shows push messages to this device. It intercepts no requests and caches nothing.

/** @typedef {{ tag: string, step: string, title: string, sentence: string, agent?: string, until?: string, path: string, outcome?: string, progress?: string[] }} Pushed */

/** Untyped: TypeScript's types of workers and of pages exclude each other. @type {any} */
const worker = self;
const SCOPE = '/console';
const SUBSCRIPTIONS = '/owner/push-subscriptions';

worker.addEventListener('install', () => worker.skipWaiting());
worker.addEventListener('activate', (/** @type {any} */ event) => event.waitUntil(worker.clients.claim()));

/** Parses a push message. An unreadable message still shows a notification: browsers revoke a subscription that shows none. @param {any} data */
function read(data) {
  try {
    return /** @type {Partial<Pushed>} */ (data.json());
  } catch {
    return {};
  }
}

/** @param {Partial<Pushed>} pushed */
function linesOf({ step, sentence, agent, until, outcome, progress = [] }) {
  const end = until && step !== 'outcome' ? new Date(until) : undefined;
  return [
    ...[outcome, ...progress].map((line) => line && `${line}.`),
    sentence,
    agent && `Agent: ${agent}`,
    end && `Until ${end.toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' })}`,
  ]
    .filter(Boolean)
    .join('\n');
}

worker.addEventListener('push', (/** @type {any} */ event) => {
  const pushed = read(event.data);
  const isSilent = pushed.step === 'outcome' || pushed.step === 'update';
  event.waitUntil(
    worker.registration.showNotification(pushed.title ?? 'Agent Broker', {
      body: linesOf(pushed) || 'Something waits for you.',
      // A later notification about the same call replaces the earlier one, silently unless it is a reminder.
      tag: pushed.tag ?? 'agent-broker',
      renotify: !isSilent,
      silent: isSilent,
      icon: '/console/icons/icon-192.png',
      badge: '/console/icons/badge-96.png',
      data: { path: pushed.path ?? SCOPE },
    }),
  );
});

/** Returns an address on this origin, whatever was pushed. @param {unknown} path */
function ownAddress(path) {
  const url = new URL(typeof path === 'string' ? path : SCOPE, worker.location.origin);
  return url.origin === worker.location.origin ? url : new URL(SCOPE, worker.location.origin);
}

worker.addEventListener('notificationclick', (/** @type {any} */ event) => {
  event.notification.close();
  event.waitUntil(open(ownAddress(event.notification.data?.path)));
});

/** Focuses a window that shows the address already, otherwise another console window, otherwise opens a new one. @param {URL} url */
async function open(url) {
  const windows = await worker.clients.matchAll({ type: 'window', includeUncontrolled: true });
  const at = (/** @type {any} */ client) => new URL(client.url).pathname;
  const there = windows.find((/** @type {any} */ client) => at(client) === url.pathname);
  const console = windows.find(
    (/** @type {any} */ client) => at(client) === SCOPE || at(client).startsWith(`${SCOPE}/`),
  );
  const found = there ?? console;
  if (!found) return await worker.clients.openWindow(url.href);
  if (!there) found.postMessage({ open: url.pathname });
  return await found.focus();
}

worker.addEventListener('pushsubscriptionchange', (/** @type {any} */ event) => event.waitUntil(renew(event)));

/**
 * The browser revoked or replaced the subscription: sends the new one to the broker. Impossible without a session; the console then shows this
 * device as off.
 *
 * @param {any} event
 */
async function renew({ oldSubscription, newSubscription }) {
  const headers = { 'X-Svc-Csrf': '1', 'Content-Type': 'application/json' };
  const answer = await fetch(SUBSCRIPTIONS, { headers, cache: 'no-store' });
  if (!answer.ok) return;
  const { public_key: applicationServerKey, subscriptions } = await answer.json();
  const hash = oldSubscription && (await hashOf(oldSubscription.endpoint));
  const old = subscriptions.find((/** @type {any} */ one) => one.endpoint_hash === hash);
  // A device that its owner removed is not added again.
  if (!old) return;
  const made =
    newSubscription ??
    (await worker.registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey }));
  const { endpoint, keys } = made.toJSON();
  const body = JSON.stringify({ endpoint, keys, device_name: old.device_name, rules: old.rules });
  const added = await fetch(SUBSCRIPTIONS, { method: 'POST', headers, body });
  if (added.ok) await fetch(`${SUBSCRIPTIONS}/${old.id}`, { method: 'DELETE', headers });
}

/** Returns the broker's identifier of an endpoint. @param {string} endpoint */
async function hashOf(endpoint) {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(endpoint));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
