// What is around every page: where one can go, who one is, whether news arrive.
/** @typedef {import('/console/html.js').Children} Children */
import { ask } from '/console/api.js';
import { html } from '/console/html.js';
import { useOwner } from '/console/shell/owner.js';
import { Link } from '/console/shell/router.js';

const PLACES = [
  { path: '/console', name: 'Inbox' },
  { path: '/console/agents', name: 'Agents' },
  { path: '/console/activity', name: 'Activity' },
  { path: '/console/connections', name: 'Connections' },
  { path: '/console/passkeys', name: 'Passkeys' },
];

/**
 * `here`: the path of the page inside. `waiting`: how much waits for a decision. `live`: whether news arrive by themselves.
 *
 * @param {{ here: string, waiting?: number, live: boolean | undefined, children: Children }} props
 */
export function Shell({ here, waiting = 0, live, children }) {
  const places = PLACES.map(
    ({ path, name }) => html`
      <li key=${path}>
        <${Link} to=${path} aria-current=${path === here ? 'page' : null}>
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
      <nav aria-label="Console"><ul role="list">${places}</ul></nav>
      <div class="foot">
        <${Liveness} live=${live} />
        <${Account} />
      </div>
    </header>
    <main id="content" tabindex="-1">${children}</main>
  `;
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

function Account() {
  const { email, role, organisation, organisations } = useOwner();
  return html`
    <details class="account" onClick=${closeBehind}>
      <summary aria-label=${`Account of ${email}`}>
        <span class="initial" aria-hidden="true">${email.slice(0, 1).toUpperCase()}</span>
        <span class="email">${email}</span>
      </summary>
      <div class="menu sheet">
        <p class="theirs"><strong>${email}</strong></p>
        <p class="quiet small theirs">${role} of ${organisation.name}</p>
        ${organisations?.map(
          ({ id, name }) =>
            html`<a key=${id} class="small theirs" href=${`/console/oidc/start?organisation=${id}`}>Switch to ${name}</a>`,
        )}
        <${Link} to="/console/settings" class="small" id="to-settings">Settings<//>
        <button type="button" class="compact" id="sign-out" onClick=${signOut}>Sign out</button>
      </div>
    </details>
  `;
}

/**
 * Who goes somewhere has left the menu.
 *
 * @param {{ target: Element, currentTarget: HTMLDetailsElement }} event
 */
function closeBehind({ target, currentTarget }) {
  if (target.closest('a')) currentTarget.open = false;
}

async function signOut() {
  await ask('POST', '/owner/sign-out', {}, { signIn: false }).catch(() => {});
  location.replace('/console/sign-in');
}
