// Updates of the inbox, over one event stream shared by all tabs: a browser opens few connections to a site, and a stream
// in each of many tabs would use all of them.
const INTERVAL_MS = 5_000;
/** Also polls at every twelfth interval while the stream is live: a machine that slept may not have noticed that its connection is lost. */
const POLL_EVERY_TICKS = 12;

/** @typedef {{ kind: 'hello' | 'changed' } | { kind: 'live', value: boolean }} Message */

/**
 * Calls `changed` after every change, and `live` with whether the event stream works; while it does not, `changed` is called every 5 seconds. Tabs
 * with the same `name` share a stream. Returns a function that stops it.
 *
 * @param {string} name
 * @param {{ changed: () => void, live: (isLive: boolean) => void }} hearers
 */
export function followNews(name, { changed, live }) {
  let isLive = false;
  const hear = (/** @type {Message} */ message) => {
    if (message.kind === 'changed') changed();
    if (message.kind !== 'live') return;
    isLive = message.value;
    live(message.value);
  };
  let leave = share(name, hear, () => isLive);
  let rounds = 0;
  const asking = setInterval(() => (!isLive || ++rounds % POLL_EVERY_TICKS === 0) && changed(), INTERVAL_MS);
  const seen = () => document.visibilityState === 'visible' && changed();
  // A page in the back/forward cache keeps its connections: the stream has to be released.
  const hidden = () => leave();
  const shown = (/** @type {PageTransitionEvent} */ { persisted }) => {
    if (!persisted) return;
    leave = share(name, hear, () => isLive);
    changed();
  };
  document.addEventListener('visibilitychange', seen);
  addEventListener('pagehide', hidden);
  addEventListener('pageshow', shown);
  return () => {
    leave();
    clearInterval(asking);
    document.removeEventListener('visibilitychange', seen);
    removeEventListener('pagehide', hidden);
    removeEventListener('pageshow', shown);
  };
}

/**
 * The tab with the lock holds the stream, and broadcasts its events; when that tab closes, the next one takes over.
 *
 * @param {string} name
 * @param {(message: Message) => void} hear
 * @param {() => boolean} isLive
 */
function share(name, hear, isLive) {
  const channel = new BroadcastChannel(`svc-news ${name}`);
  const over = new AbortController();
  const tell = (/** @type {Message} */ message) => {
    hear(message);
    if (!over.signal.aborted) channel.postMessage(message);
  };
  const hold = () => {
    channel.onmessage = ({ data }) => (data.kind === 'hello' ? tell({ kind: 'live', value: isLive() }) : hear(data));
    return listen(tell, over.signal);
  };
  channel.onmessage = ({ data }) => hear(data);
  // Browsers offer locks only on https and localhost.
  if (navigator.locks) {
    navigator.locks.request(`svc-news ${name}`, { signal: over.signal }, hold).catch(() => {});
    channel.postMessage({ kind: 'hello' });
  } else hold();
  return () => {
    over.abort();
    channel.close();
  };
}

/**
 * Keeps a stream open until the signal aborts; resolves then.
 *
 * @param {(message: Message) => void} tell
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
function listen(tell, signal) {
  return new Promise((over) => {
    /** @type {EventSource | undefined} */
    let source;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let again;
    const open = () => {
      const opened = new EventSource('/owner/events');
      source = opened;
      opened.addEventListener('inbox', () => {
        tell({ kind: 'live', value: true });
        tell({ kind: 'changed' });
      });
      opened.addEventListener('error', () => {
        tell({ kind: 'live', value: false });
        // The broker refused the stream: the browser does not retry. Meanwhile polling reports the error.
        if (opened.readyState !== EventSource.CLOSED) return;
        clearTimeout(again);
        again = setTimeout(open, INTERVAL_MS);
      });
    };
    open();
    signal.addEventListener('abort', () => {
      clearTimeout(again);
      source?.close();
      over();
    });
  });
}
