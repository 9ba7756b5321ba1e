// The children of an agent, and the MCP clients that act as it.
/** @typedef {import('../../answers.ts').WholeAgent} WholeAgent */
import { Section } from '/console/agent/section.js';
import { badgeOf } from '/console/agents/status-labels.js';
import { html } from '/console/html.js';
import { AgentName } from '/console/shell/agent-name.js';
import { useLoaded } from '/console/shell/loaded.js';
import { Link } from '/console/shell/router.js';
import { Ago, exactly } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

const INTERVAL_MS = 15_000;
const SHOWN = 20;

/** Renders each list only when it is not empty. @param {{ agent: WholeAgent }} props */
export function Family({ agent: { agent_id } }) {
  const path = /** @type {const} */ (`/owner/agents?parent=${agent_id}&sort=-created&limit=${SHOWN}`);
  const children = useLoaded(path, INTERVAL_MS).answer;
  const ofIt = /** @type {const} */ (
    `/owner/mcp-authorisations?state=live&agent=${encodeURIComponent(agent_id)}&limit=${SHOWN}`
  );
  const answer = useLoaded(ofIt, INTERVAL_MS).answer;
  const clients = answer?.authorisations;
  const moreClients = (answer?.count?.live ?? 0) - (clients?.length ?? 0);
  const more = (children?.total ?? 0) - (children?.agents.length ?? 0);
  return html`
    ${
      children &&
      children.agents.length > 0 &&
      html`<${Section} id="children" title="Children">
        <ul role="list" class="sheet rows">
          ${children.agents.map((child) => {
            const { kind, words } = badgeOf(child);
            return html`<li class="row line-row" key=${child.agent_id} data-child=${child.agent_id}>
              <span><${AgentName} agent=${child} /> <span class="badge" data-kind=${kind}>${words}</span></span>
              ${child.expires_at && html`<span class="small quiet">until ${exactly(child.expires_at)}</span>`}
            </li>`;
          })}
          ${more > 0 && html`<li class="row line-row quiet">and ${more} more</li>`}
        </ul>
      <//>`
    }
    ${
      clients &&
      clients.length > 0 &&
      html`<${Section} id="mcp-clients" title="MCP clients that act as it">
        <ul role="list" class="sheet rows">
          ${clients.map(
            (one) => html`<li class="row line-row" key=${one.id}>
              <${Link} to=${`/console/clients?agent=${agent_id}`} class="theirs">${visibleLine(one.client.name)}<//>
              <span class="small quiet">${one.last_used_at ? html`last used <${Ago} at=${one.last_used_at} />` : 'not used yet'}</span>
            </li>`,
          )}
          ${moreClients > 0 && html`<li class="row line-row quiet">and ${moreClients} more</li>`}
        </ul>
      <//>`
    }
  `;
}
