// The console: who is signed in, which page is open, and the inbox that all of them count.
/** @typedef {import('../answers.ts').Me} Me */
/** @typedef {import('/console/inbox/use-inbox.js').InboxState} InboxState */
import { ActivityPage } from '/console/activity/activity.js';
import { AgentsPage } from '/console/agents/agents.js';
import { asError, ask } from '/console/api.js';
import { ClientsPage } from '/console/clients/clients.js';
import { ConnectionsPage } from '/console/connections/connections.js';
import { byId, html, render, useCallback, useEffect, useLayoutEffect, useState } from '/console/html.js';
import { isWaiting } from '/console/inbox/entries.js';
import { Inbox } from '/console/inbox/inbox.js';
import { useInbox } from '/console/inbox/use-inbox.js';
import { PasskeysPage } from '/console/passkeys/passkeys.js';
import { PeoplePage } from '/console/people/people.js';
import { ReportsPage } from '/console/reports/reports.js';
import { SettingsPage } from '/console/settings/settings.js';
import { Announcer } from '/console/shell/announce.js';
import { Failed, Loading } from '/console/shell/empty.js';
import { Owner } from '/console/shell/owner.js';
import { usePlace } from '/console/shell/router.js';
import { Shell } from '/console/shell/shell.js';

/** @typedef {{ name: string, page: (props: { place: URL, inbox: InboxState }) => unknown }} Page */

/** @type {Page} */
const HOME = { name: 'Inbox', page: Inbox };
/**
 * By address.
 *
 * @type {Readonly<Record<string, Page>>}
 */
const PAGES = {
  '/console': HOME,
  '/console/agents': { name: 'Agents', page: AgentsPage },
  '/console/activity': { name: 'Activity', page: ActivityPage },
  '/console/connections': { name: 'Connections', page: ConnectionsPage },
  '/console/clients': { name: 'MCP clients', page: ClientsPage },
  '/console/people': { name: 'People', page: PeoplePage },
  '/console/passkeys': { name: 'Passkeys', page: PasskeysPage },
  '/console/reports': { name: 'Reports', page: ReportsPage },
  '/console/settings': { name: 'Settings', page: SettingsPage },
};

function App() {
  const [owner, setOwner] = useState(/** @type {Me | undefined} */ (undefined));
  const [error, setError] = useState(/** @type {Error | undefined} */ (undefined));
  const load = useCallback(() => {
    setError(undefined);
    ask('GET', '/owner/me').then(setOwner, (thrown) => setError(asError(thrown)));
  }, []);
  useEffect(load, []);
  if (error) return html`<main class="alone"><${Failed} error=${error} again=${load} /></main>`;
  if (!owner) return html`<main class="alone"><${Loading} /></main>`;
  return html`<${Owner.Provider} value=${owner}><${Announcer}><${Console} owner=${owner} /><//><//>`;
}

/** @param {{ owner: Me }} props */
function Console({ owner }) {
  const place = usePlace();
  const inbox = useInbox(owner);
  const waiting = inbox.entries?.filter(isWaiting).length ?? 0;
  const { name, page: Page } = PAGES[place.pathname] ?? HOME;
  // Before the browser paints: the title and the list say the same number.
  useLayoutEffect(() => {
    document.title = `${waiting > 0 ? `(${waiting}) ` : ''}${name} · Agent Broker`;
  }, [waiting, name]);
  return html`
    <${Shell} here=${place.pathname} waiting=${waiting} live=${inbox.error ? false : inbox.live}>
      <${Page} key=${place.pathname} place=${place} inbox=${inbox} />
    <//>
  `;
}

render(html`<${App} />`, byId('app'));
