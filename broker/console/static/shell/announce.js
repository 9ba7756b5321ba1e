// Announces the result of an action once. A success is visible in its own place, and is announced for screen readers only;
// other results are also shown on the screen.
/** @typedef {import('/console/html.js').Children} Children */
import { createContext, html, useCallback, useContext, useRef, useState } from '/console/html.js';

/** @type {(words: string, kind?: string) => void} */
const inSilence = () => {};
const Announce = createContext(inSilence);
const STAYS_MS = 8_000;

/** Returns `announce(words, kind)`; kind is good, wait, bad or empty. */
export const useAnnounce = () => useContext(Announce);

/** @typedef {{ words: string, kind: string | undefined, at: number }} Said */

/** @param {{ children: Children }} props */
export function Announcer({ children }) {
  const [said, setSaid] = useState(/** @type {Said | undefined} */ (undefined));
  const timer = useRef(/** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined));
  const announce = useCallback((/** @type {string} */ words, /** @type {string | undefined} */ kind) => {
    clearTimeout(timer.current);
    setSaid({ words, kind, at: Date.now() });
    // An error message stays until it is dismissed or replaced.
    if (kind !== 'bad') timer.current = setTimeout(() => setSaid(undefined), STAYS_MS);
  }, []);
  return html`
    <${Announce.Provider} value=${announce}>
      ${children}
      <div class="toasts" role="status" aria-live="polite" id="said">
        ${
          said &&
          (said.kind === 'good'
            ? html`<p class="unseen" key=${said.at}>${said.words}</p>`
            : html`<div class="toast" key=${said.at} data-kind=${said.kind ?? ''}>
                <span class="theirs">${said.words}</span>
                <button type="button" class="plain compact" onClick=${() => setSaid(undefined)}>Dismiss</button>
              </div>`)
        }
      </div>
    <//>
  `;
}
