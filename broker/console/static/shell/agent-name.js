// The name of an agent as a link to its page.
import { html } from '/console/html.js';
import { Link } from '/console/shell/router.js';
import { visibleLine } from '/console/visible.js';

/** Returns the page of an agent, by its agent id. */
export const pageOf = (/** @type {string} */ agentId) => `/console/agents/${agentId}`;

/** @param {{ agent: { agent_id: string, name: string } }} props */
export const AgentName = ({ agent: { agent_id, name } }) =>
  html`<${Link} to=${pageOf(agent_id)} class="theirs">${visibleLine(name)}<//>`;

/** An agent's labels, each a link to the agents with that label. @param {{ labels: readonly string[] }} props */
export const AgentLabels = ({ labels }) =>
  labels.length > 0 &&
  html`<ul role="list" class="labels small" aria-label="Labels">${labels.map(
    (one) =>
      html`<li key=${one}><${Link} to=${`/console/agents?label=${encodeURIComponent(one)}`} class="badge theirs">${visibleLine(one)}<//></li>`,
  )}</ul>`;
