// The console: the signed-in owner, the open page, and the inbox whose count every page shows.
/** @typedef {import('../answers.ts').Me} Me */
/** @typedef {import('/console/inbox/use-inbox.js').InboxState} InboxState */
import { ActivityPage } from '/console/activity/activity.js';
import { AgentPage } from '/console/agent/agent.js';
import { AgentsPage } from '/console/agents/agents.js';
import { asError, ask, onOtherOwner, onRoleInDoubt } from '/console/api.js';
import { AuditSinksPage } from '/console/audit-sinks/audit-sinks.js';
import { ClientsPage } from '/console/clients/clients.js';
import { ConnectionsPage } from '/console/connections/connections.js';
import { GalleryPage } from '/console/connections/gallery.js';
import { GovernancePage } from '/console/governance/governance.js';
import { byId, html, render, useCallback, useEffect, useLayoutEffect, useState } from '/console/html.js';
import { isWaiting } from '/console/inbox/entries.js';
import { Inbox } from '/console/inbox/inbox.js';
import { useInbox } from '/console/inbox/use-inbox.js';
import { NewAgentPage } from '/console/new-agent/new-agent.js';
import { NoticesPage } from '/console/notices/notices.js';
import { onNoticeClick } from '/console/notices/push.js';
import { OverviewPage } from '/console/overview/overview.js';
import { PasskeysPage } from '/console/passkeys/passkeys.js';
import { PeoplePage } from '/console/people/people.js';
import { forgetPlace } from '/console/place.js';
import { PoliciesPage } from '/console/policies/policies.js';
import { PolicyPage } from '/console/policy/policy.js';
import { ReceiptPage } from '/console/receipt/receipt.js';
import { ReportsPage } from '/console/reports/reports.js';
import { RestoredPage } from '/console/restored/restored.js';
import { SettingsPage } from '/console/settings/settings.js';
import { Announcer } from '/console/shell/announce.js';
import { Boundary } from '/console/shell/boundary.js';
import { unfoldInvalid } from '/console/shell/invalid.js';
import { Failed, Loading } from '/console/shell/loaded.js';
import { Owner } from '/console/shell/owner.js';
import { navigate, usePlace } from '/console/shell/router.js';
import { Shell } from '/console/shell/shell.js';
import { StandingPage } from '/console/standing/standing.js';
import { TeamPage } from '/console/team/team.js';

/** @typedef {{ name: string, page: (props: { place: URL, inbox: InboxState }) => unknown }} Page */

/** @type {Page} */
const HOME = { name: 'Inbox', page: Inbox };
/**
 * Pages by address.
 *
 * @type {Readonly<Record<string, Page>>}
 */
const PAGES = {
  '/console': HOME,
  '/console/agents': { name: 'Agents', page: AgentsPage },
  '/console/agents/new': { name: 'New agent', page: NewAgentPage },
  '/console/activity': { name: 'Activity', page: ActivityPage },
  '/console/overview': { name: 'Overview', page: OverviewPage },
  '/console/connections': { name: 'Connections', page: ConnectionsPage },
  '/console/connections/new': { name: 'Connect a platform', page: GalleryPage },
  '/console/clients': { name: 'MCP clients', page: ClientsPage },
  '/console/people': { name: 'People', page: PeoplePage },
  '/console/notices': { name: 'Notices', page: NoticesPage },
  '/console/audit-sinks': { name: 'Audit sinks', page: AuditSinksPage },
  '/console/governance': { name: 'Governance file', page: GovernancePage },
  '/console/team': { name: 'Team', page: TeamPage },
  '/console/passkeys': { name: 'Passkeys', page: PasskeysPage },
  '/console/policies': { name: 'Policies', page: PoliciesPage },
  '/console/receipt': { name: 'Receipt', page: ReceiptPage },
  '/console/standing-approvals': { name: 'Standing approvals', page: StandingPage },
  '/console/reports': { name: 'Reports', page: ReportsPage },
  '/console/restored': { name: 'Restored', page: RestoredPage },
  '/console/settings': { name: 'Settings', page: SettingsPage },
};

/** @type {Page} */
const AGENT = { name: 'Agent', page: AgentPage };
/** @type {Page} */
const POLICY = { name: 'Policy', page: PolicyPage };
const OF_AGENT = /^\/console\/agents\/[^/]+$/;
const OF_POLICY = /^\/console\/policies\/[^/]+$/;

/** Returns the page at an address. */
function pageAt(/** @type {string} */ path) {
  return PAGES[path] ?? (OF_AGENT.test(path) ? AGENT : OF_POLICY.test(path) ? POLICY : HOME);
}

function App() {
  const [owner, setOwner] = useState(/** @type {Me | undefined} */ (undefined));
  const [error, setError] = useState(/** @type {Error | undefined} */ (undefined));
  const load = useCallback(() => {
    setError(undefined);
    ask('GET', '/owner/me').then(setOwner, (thrown) => setError(asError(thrown)));
  }, []);
  useEffect(load, []);
  // The page that was asked for before a sign-in has been reached.
  useEffect(() => {
    if (owner) forgetPlace();
  }, [owner]);
  // An unchanged owner stays the same object, so that pages are not drawn again. When the read fails, the page keeps what it shows.
  const refresh = () =>
    ask('GET', '/owner/me').then(
      (me) => setOwner((before) => (before && JSON.stringify(me) !== JSON.stringify(before) ? me : before)),
      () => {},
    );
  const leave = (/** @type {Error} */ thrown) => {
    setOwner(undefined);
    setError(thrown);
  };
  useEffect(() => onOtherOwner(leave), []);
  useEffect(() => onRoleInDoubt(refresh), []);
  if (error) return html`<main class="alone"><${Failed} error=${error} again=${load} /></main>`;
  if (!owner) return html`<main class="alone"><${Loading} /></main>`;
  return html`<${Owner.Provider} value=${owner}><${Announcer}><${Console} owner=${owner} /><//><//>`;
}

/** @param {{ owner: Me }} props */
function Console({ owner }) {
  const place = usePlace();
  const inbox = useInbox(owner);
  const waiting = inbox.entries?.filter(isWaiting).length ?? 0;
  const { name, page: Page } = pageAt(place.pathname);
  useEffect(() => {
    // The badge on the icon of an installed console; browsers without the Badging API lack the method.
    const shown = waiting > 0 ? navigator.setAppBadge?.(waiting) : navigator.clearAppBadge?.();
    shown?.catch(() => {});
  }, [waiting]);
  // A path outside the console is a held call, which the inbox shows.
  useEffect(() => onNoticeClick((path) => navigate(path.startsWith('/console') ? path : '/console')), []);
  // Before the browser paints, so that the title and the list show the same number.
  useLayoutEffect(() => {
    document.title = `${waiting > 0 ? `(${waiting}) ` : ''}${name} · Agent Broker`;
  }, [waiting, name]);
  return html`
    <${Shell} here=${place.pathname} waiting=${waiting} live=${inbox.error ? false : inbox.live}>
      <${Boundary} key=${place.pathname} what="This page"><${Page} place=${place} inbox=${inbox} /><//>
    <//>
  `;
}

unfoldInvalid();
render(html`<${App} />`, byId('app'));
