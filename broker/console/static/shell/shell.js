// The frame around every page: navigation, account, and whether updates arrive.
/** @typedef {import('/console/html.js').Children} Children */
import { asError, ask, Refused } from '/console/api.js';
import { html, useLayoutEffect, useRef, useState } from '/console/html.js';
import { RestoredBanner } from '/console/restored/banner.js';
import { useAnnounce } from '/console/shell/announce.js';
import { useOwner } from '/console/shell/owner.js';
import { Link } from '/console/shell/router.js';
import { StopButton, Stopped, useStop } from '/console/stop/stop.js';

/** `has`: pages that are reached only from this one. @type {{ path: string, name: string, has?: readonly string[] }[]} */
const PLACES = [
  { path: '/console', name: 'Inbox', has: ['/console/standing-approvals'] },
  { path: '/console/agents', name: 'Agents', has: ['/console/clients', '/console/reports'] },
  { path: '/console/activity', name: 'Activity', has: ['/console/receipt'] },
  { path: '/console/overview', name: 'Overview' },
  { path: '/console/connections', name: 'Connections', has: ['/console/people'] },
  { path: '/console/policies', name: 'Policies' },
  { path: '/console/team', name: 'Team', has: ['/console/passkeys'] },
  {
    path: '/console/settings',
    name: 'Settings',
    has: ['/console/notices', '/console/audit-sinks', '/console/governance', '/console/restored'],
  },
];
const isBelow = (/** @type {string} */ path, /** @type {string} */ here) =>
  path !== '/console' && here.startsWith(`${path}/`);
const PASSKEYS = '/console/passkeys';
const NOTICES = '/console/notices';

/**
 * `here`: the path of the page inside. `waiting`: the number of waiting decisions. `live`: whether updates arrive by the event stream.
 *
 * @param {{ here: string, waiting?: number, live: boolean | undefined, children: Children }} props
 */
export function Shell({ here, waiting = 0, live, children }) {
  const stop = useStop();
  const places = PLACES.map(
    ({ path, name, has }) => html`
      <li key=${path}>
        <${Link} to=${path} aria-current=${path === here ? 'page' : has?.includes(here) || isBelow(path, here) ? 'true' : null}>
          ${name}
          ${path === '/console' && waiting > 0 && html`<span class="count" id="waiting">${waiting}<span class="unseen"> waiting</span></span>`}
        <//>
      </li>
    `,
  );
  return html`
    <a class="skip" href="#content">Skip to the content</a>
    <header class="bar">
      <a class="brand" href="/console"><img src="/console/icon.svg" alt="" width="24" height="24" />Agent Broker</a>
      <${Navigation} here=${here}>${places}<//>
      <div class="foot">
        <${StopButton} stop=${stop} />
        <${Liveness} live=${live} />
        <${Account} here=${here} />
      </div>
    </header>
    <main id="content" tabindex="-1"><${RestoredBanner} restored=${stop.restored} here=${here} /><${Stopped} stop=${stop} />${children}</main>
  `;
}

/**
 * The navigation. On a phone it scrolls: the current tab is scrolled into view, and an edge with more tabs beyond it fades.
 *
 * @param {{ here: string, children: Children }} props
 */
function Navigation({ here, children }) {
  const nav = useRef(/** @type {HTMLElement | null} */ (null));
  const [beyond, setBeyond] = useState('');
  const look = () => {
    const { scrollLeft = 0, clientWidth = 0, scrollWidth = 0 } = nav.current ?? {};
    const start = scrollLeft > 1;
    const end = scrollLeft + clientWidth < scrollWidth - 1;
    setBeyond(start && end ? 'both' : start ? 'start' : end ? 'end' : '');
  };
  useLayoutEffect(() => {
    const show = () => {
      const current = nav.current?.querySelector('[aria-current]');
      // Not scrollIntoView, which scrolls the page, too, when the tabs are above the window.
      if (nav.current && current) nav.current.scrollLeft += middleOf(current) - middleOf(nav.current);
      look();
    };
    // The tabs change their width with the window, and when the count of waiting decisions appears or disappears.
    const width = new ResizeObserver(show);
    for (const element of [nav.current, nav.current?.firstElementChild]) if (element) width.observe(element);
    return () => width.disconnect();
  }, [here]);
  return html`<nav aria-label="Console" ref=${nav} data-beyond=${beyond} onScroll=${look}><ul role="list">${children}</ul></nav>`;
}

/** @param {Element} element */
function middleOf(element) {
  const { left, right } = element.getBoundingClientRect();
  return (left + right) / 2;
}

/** @param {{ live: boolean | undefined }} props */
function Liveness({ live }) {
  if (live === undefined) return null;
  return html`
    <p class="liveness" id="liveness" data-live=${live} role="status" title=${live ? '' : 'The connection for news is down; asking every 5 seconds.'}>
      ${live ? 'Live' : html`Not live<span class="why"> · asking every 5 s</span>`}
    </p>
  `;
}

/** @param {{ here: string }} props */
function Account({ here }) {
  const { email, role, organisation, organisations } = useOwner();
  const announce = useAnnounce();
  const leave = () =>
    signOut().catch((thrown) => announce(`You may still be signed in: ${asError(thrown).message}`, 'bad'));
  return html`
    <details class="account" onClick=${closeBehind}>
      <summary aria-label=${`${email}: account`}>
        <span class="initial" aria-hidden="true" data-initial=${email.slice(0, 1).toUpperCase()}></span>
        <span class="email">${email}</span>
      </summary>
      <div class="menu sheet">
        <p class="theirs"><strong>${email}</strong></p>
        <p class="quiet small theirs">${role} of ${organisation.name}</p>
        ${organisations?.map(
          ({ id, name }) =>
            html`<a key=${id} class="small theirs" href=${`/console/oidc/start?organisation=${id}`}>Switch to ${name}</a>`,
        )}
        <${Link} to=${NOTICES} class="small" id="to-notices" aria-current=${here === NOTICES ? 'page' : null}>Notices<//>
        <${Link} to=${PASSKEYS} class="small" id="to-passkeys" aria-current=${here === PASSKEYS ? 'page' : null}>Passkeys<//>
        <button type="button" class="compact" id="sign-out" onClick=${leave}>Sign out</button>
      </div>
    </details>
  `;
}

/**
 * Closes the menu when a link in it is followed.
 *
 * @param {{ target: Element, currentTarget: HTMLDetailsElement }} event
 */
function closeBehind({ target, currentTarget }) {
  if (target.closest('a')) currentTarget.open = false;
}

/** Ends the session, and shows the sign-in page: only then, because that page means that nobody is signed in. Throws Refused, Unreachable or CutShort. */
async function signOut() {
  await ask('POST', '/owner/sign-out', {}, { signIn: false }).catch((error) => {
    if (!(error instanceof Refused && error.status === 401)) throw error;
  });
  location.replace('/console/sign-in');
}
