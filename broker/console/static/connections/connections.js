// The organisation's connections: whose account each uses, what was granted, connecting and disconnecting.
/** @typedef {import('../../answers.ts').Connection} Connection */
import { ConnectionRow } from '/console/connections/connection-row.js';
import { Disconnect } from '/console/connections/disconnect.js';
import { html, useEffect, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Command } from '/console/shell/command.js';
import { Empty, Failed, Loading } from '/console/shell/empty.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Link, navigate } from '/console/shell/router.js';
import { useLoaded } from '/console/shell/use-loaded.js';
import { ToolServers } from '/console/tools/tools.js';
import { visibleLine } from '/console/visible.js';

const EVERY_MS = 10_000;
const RANK = { needs_attention: 0, reauth_needed: 0, not_connected: 1, connected: 2 };

/**
 * `?connect=<id>`: the one that a link asks to connect. `?connected=<id>`: the one that just was.
 *
 * @param {{ place: URL }} props
 */
export function ConnectionsPage({ place }) {
  const { answer, error, reload } = useLoaded('/owner/connections', EVERY_MS);
  const owner = useOwner();
  const announce = useAnnounce();
  const [leaving, setLeaving] = useState(/** @type {Connection | undefined} */ (undefined));
  const wanted = place.searchParams.get('connect');
  const done = place.searchParams.get('connected');
  const connections = answer?.connections;
  // What needs somebody stands first.
  const sorted = connections && [...connections].sort((a, b) => RANK[a.state] - RANK[b.state]);
  const just = connections?.find(({ id }) => id === done);
  useEffect(() => {
    if (!just) return;
    announce(`“${visibleLine(just.label)}” is connected.`, 'good');
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
      <p class="small"><${Link} to="/console/people" id="to-people">People<//></p></div>
    <div class="connections stack">
      <p class="quiet">What the broker uses to call platforms for your agents. No agent sees a credential, and nobody can read one here.</p>
      ${error && html`<${Failed} error=${error} again=${reload} />`}
      ${!connections && !error && html`<${Loading} />`}
      ${connections?.length === 0 && html`<${NoConnections} />`}
      ${
        sorted &&
        sorted.length > 0 &&
        html`<ul role="list" class="sheet rows" id="connections">
          ${sorted.map(
            (connection) =>
              html`<${ConnectionRow} key=${connection.id} connection=${connection} may=${mayChange(owner)} wanted=${connection.id === wanted} disconnect=${() => setLeaving(connection)} reload=${reload} />`,
          )}
        </ul>`
      }
      ${connections && connections.length > 0 && !mayChange(owner) && html`<p class="quiet small">Your role is ${owner.role}: an admin can connect.</p>`}
      <${ToolServers} />
    </div>
    ${leaving && html`<${Disconnect} connection=${leaving} onClose=${() => setLeaving(undefined)} onDone=${reload} />`}
  `;
}

const NoConnections = () => html`
  <${Empty} title="There are no connections yet">
    <p>Name the platforms that your agents may call in a governance file, and a connection for each:</p>
    <${Command} text="npx agent-broker apply governance.yaml" />
  <//>
`;
