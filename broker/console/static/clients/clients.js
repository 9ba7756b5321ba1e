// The connected MCP clients: who approved each, which agent it acts as, its scopes, its last use; and revoking its access.
/** @typedef {import('../../answers.ts').McpAuthorisation} McpAuthorisation */
import { ClientRow } from '/console/clients/client-row.js';
import { Revoke } from '/console/clients/revoke.js';
import { html, useState } from '/console/html.js';
import { Command } from '/console/shell/command.js';
import { Empty, Failed, Loading } from '/console/shell/empty.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { useLoaded } from '/console/shell/use-loaded.js';

const EVERY_MS = 15_000;

/**
 * `?agent=<agent_id>`: only clients that act as this agent.
 *
 * @param {{ place: URL }} props
 */
export function ClientsPage({ place }) {
  const { answer, error, reload } = useLoaded('/owner/mcp-authorisations', EVERY_MS);
  const owner = useOwner();
  const [leaving, setLeaving] = useState(/** @type {McpAuthorisation | undefined} */ (undefined));
  const agent = place.searchParams.get('agent');
  const all = answer?.authorisations.filter((one) => !agent || one.agent.agent_id === agent);
  const live = all?.filter(({ status }) => status === 'live') ?? [];
  const over = all?.filter(({ status }) => status !== 'live') ?? [];
  const rows = (
    /** @type {McpAuthorisation[]} */ some,
    /** @type {string} */ id,
  ) => html`<ul role="list" class="sheet rows" id=${id}>
    ${some.map(
      (one) => html`<${ClientRow} key=${one.id} one=${one} may=${mayChange(owner)} revoke=${() => setLeaving(one)} />`,
    )}
  </ul>`;
  return html`
    <div class="page-head"><h1>MCP clients</h1></div>
    <div class="clients stack">
      <p class="quiet">Applications that you let act as agents of yours, over <code>/mcp</code>. Their names are not verified.
        ${agent && html` Of one agent: <a href="/console/clients">show all</a>.`}</p>
      ${error && html`<${Failed} error=${error} again=${reload} />`}
      ${!all && !error && html`<${Loading} />`}
      ${all?.length === 0 && html`<${NoClients} />`}
      ${live.length > 0 && rows(live, 'clients')}
      ${live.length === 0 && over.length > 0 && html`<p id="none-live">No client has access now.</p>`}
      ${live.length > 0 && !mayChange(owner) && html`<p class="quiet small">Your role is ${owner.role}: an admin can revoke access.</p>`}
      ${
        over.length > 0 &&
        html`<details id="over">
          <summary>Over (${over.length})</summary>
          ${rows(over, 'clients-over')}
        </details>`
      }
    </div>
    ${leaving && html`<${Revoke} one=${leaving} onClose=${() => setLeaving(undefined)} onDone=${reload} />`}
  `;
}

const NoClients = () => html`
  <${Empty} title="No MCP client is connected yet">
    <p>Give one this address. It sends you to a page here, on which you decide:</p>
    <${Command} text=${`claude mcp add --transport http broker ${location.origin}/mcp`} />
  <//>
`;
