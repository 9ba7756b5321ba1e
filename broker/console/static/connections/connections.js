// The connections page: whose account each connection uses, what was granted, and what an admin can change.
/** @typedef {import('../../answers.ts').Platform} Platform */
/** @typedef {import('../../answers.ts').Connection} Connection */
/** @typedef {import('/console/connections/connection-row.js').Change} Change */
import { ask } from '/console/api.js';
import { Remove, Replace, TimeoutsForm } from '/console/connections/change.js';
import { isOfPeople } from '/console/connections/connection-labels.js';
import { ConnectionRow } from '/console/connections/connection-row.js';
import { Disconnect } from '/console/connections/disconnect.js';
import { Give } from '/console/connections/done.js';
import { GALLERY } from '/console/connections/gallery.js';
import { Changes } from '/console/connections/manifest.js';
import { html, useEffect, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Dialog } from '/console/shell/dialog.js';
import { Empty, Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Link, navigate } from '/console/shell/router.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { ToolServers } from '/console/tools/tools.js';
import { visibleLine } from '/console/visible.js';

const INTERVAL_MS = 10_000;
/** Changes that open a confirmation dialog first. */
const DIALOGS = { disconnect: Disconnect, replace: Replace, patience: TimeoutsForm, remove: Remove };
const RANK = { needs_attention: 0, reauth_needed: 0, not_connected: 1, connected: 2 };
/** @param {Connection} one */
const rankOf = (one) => RANK[isOfPeople(one) ? 'connected' : one.state];

/**
 * `?connect=<id>`: the connection that a link asks to connect. `?connected=<id>`: the connection that was just connected.
 *
 * @param {{ place: URL }} props
 */
export function ConnectionsPage({ place }) {
  const { answer, error, reload } = useLoaded('/owner/connections', INTERVAL_MS);
  const owner = useOwner();
  const announce = useAnnounce();
  const may = mayChange(owner);
  const [changing, setChanging] = useState(
    /** @type {{ connection: Connection, what: Change } | undefined} */ (undefined),
  );
  const [fresh, setFresh] = useState(/** @type {Connection | undefined} */ (undefined));
  const Ask = changing && DIALOGS[changing.what];
  const wanted = place.searchParams.get('connect');
  const done = place.searchParams.get('connected');
  const connections = answer?.connections;
  // Connections that need attention come first.
  const sorted = connections && [...connections].sort((a, b) => rankOf(a) - rankOf(b));
  const just = connections?.find(({ id }) => id === done);
  useEffect(() => {
    if (!just) return;
    announce(`“${visibleLine(just.label)}” is connected.`, 'good');
    setFresh(just);
    navigate('/console/connections', { replace: true });
  }, [just?.id]);
  useEffect(() => {
    if (wanted && connections)
      /** @type {HTMLElement | null} */ (
        document.querySelector(`[data-connection="${CSS.escape(wanted)}"] .connect`)
      )?.focus();
  }, [wanted, connections === undefined]);
  return html`
    <div class="page-head"><h1>Connections</h1>
      <div class="buttons"><${Link} to="/console/people" class="small" id="to-people">People<//>
      ${may && connections && connections.length > 0 && html`<${Link} to=${GALLERY} class="button primary" id="to-gallery">Connect a platform<//>`}</div></div>
    <div class="connections stack">
      <p class="quiet">What the broker uses to call platforms for your agents. No agent sees a credential, and nobody can read one here.</p>
      ${error && html`<${Failed} error=${error} again=${reload} />`}
      ${!connections && !error && html`<${Loading} />`}
      ${connections?.length === 0 && html`<${NoConnections} may=${may} role=${owner.role} />`}
      ${fresh && may && html`<section class="sheet fresh" id="fresh" aria-label="What comes next"><p><strong class="theirs">${visibleLine(fresh.label)}</strong> is connected. <strong>Test</strong> below asks the platform; then</p><${Give} platform=${fresh.platform} /></section>`}
      ${
        sorted &&
        sorted.length > 0 &&
        html`<ul role="list" class="sheet rows" id="connections">
          ${sorted.map(
            (connection) =>
              html`<${ConnectionRow} key=${connection.id} connection=${connection} may=${may} wanted=${connection.id === wanted} change=${(/** @type {Change} */ what) => setChanging({ connection, what })} reload=${reload} />`,
          )}
        </ul>`
      }
      ${connections && connections.length > 0 && !may && html`<p class="quiet small">Your role is ${owner.role}: an admin can connect, test and change them.</p>`}
      ${may && html`<${Updates} />`}
      <${ToolServers} />
    </div>
    ${changing && Ask && html`<${Ask} connection=${changing.connection} onClose=${() => setChanging(undefined)} onDone=${reload} />`}
  `;
}

/** @param {{ may: boolean, role: string }} props */
const NoConnections = ({ may, role }) => html`
  <${Empty} title="There are no connections yet">
    <p>Connect a platform such as GitHub, Slack or Stripe: your agents call it through the broker, and none of them sees the credential.</p>
    ${may ? html`<p><${Link} to=${GALLERY} class="button primary" id="first-connection">Connect a platform<//></p>` : html`<p class="quiet small">Your role is ${role}: an admin can connect.</p>`}
  <//>
`;

// Built-in platforms whose manifest is from an earlier release: what an update changes, and the update itself.
/** @typedef {{ version: number, changes: readonly string[], warnings: readonly string[] }} Tried */
/** Renders nothing when no update exists. */
function Updates() {
  const { answer, reload } = useLoaded('/owner/platforms', 600_000);
  const [looking, setLooking] = useState(/** @type {Platform | undefined} */ (undefined));
  const waiting = answer?.platforms.filter((one) => one.update_available) ?? [];
  if (waiting.length === 0) return null;
  return html`<section class="sheet stack" aria-labelledby="updates-head" id="updates">
    <h2 id="updates-head">Updates of platforms</h2>
    <p class="quiet">This release of the broker has newer manifests of these platforms than they were connected with. Nothing changes until you apply an update.</p>
    <ul role="list" class="rows">
      ${waiting.map(
        (one) =>
          html`<li key=${one.platform_id} class="row"><span><strong class="theirs">${visibleLine(one.name)}</strong>${one.name !== one.platform_id && html` <span class="quiet small theirs">${one.platform_id}</span>`}</span>
            <button type="button" class="compact" data-update=${one.platform_id} onClick=${() => setLooking(one)}>Show what changes</button></li>`,
      )}
    </ul>
    ${looking && html`<${Update} platform=${looking} onClose=${() => setLooking(undefined)} onDone=${reload} />`}
  </section>`;
}

/** @param {{ platform: Platform, onClose: () => void, onDone: () => void }} props */
function Update({ platform, onClose, onDone }) {
  const { platform_id, name } = platform;
  const [tried, setTried] = useState(/** @type {Tried | undefined} */ (undefined));
  const { busy, problem, run } = useDoing();
  const announce = useAnnounce();
  const address = /** @type {const} */ (`/owner/platforms/${platform_id}`);
  const look = () =>
    run(async () => {
      const { version } = await ask('GET', address);
      setTried(await ask('POST', `${address}/update`, { version, dry_run: true }));
    });
  const update = () =>
    run(async () => {
      if (!tried) return;
      const { version } = await ask('POST', `${address}/update`, { version: tried.version });
      announce(`“${visibleLine(name)}” has version ${version} of its manifest.`, 'good');
      onDone();
      onClose();
    });
  useEffect(() => {
    look();
  }, [platform_id]);
  return html`<${Dialog} title=${`Update ${visibleLine(name)}?`} onClose=${onClose} onSubmit=${update}>
    ${tried && html`<${Changes} ...${tried} />`}
    ${!tried && !problem && html`<${Loading} />`}
    <${Problem} problem=${problem} />
    <div class="buttons">
      <button type="button" onClick=${onClose}>Cancel</button>
      ${problem && html`<button type="button" id="look-again" onClick=${look} disabled=${busy}>Look again</button>`}
      <button type="submit" class="primary" id="update-platform" disabled=${busy || !tried || problem !== undefined}>Update</button>
    </div>
  <//>`;
}
