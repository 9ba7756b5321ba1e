// The agents under a policy, and assigning others to it.
/** @typedef {import('/console/policy/subject.js').Subject} Subject */
import { badgeOf } from '/console/agents/status-labels.js';
import { html, useState } from '/console/html.js';
import { AssignDialog } from '/console/policy/assign-dialog.js';
import { AgentName } from '/console/shell/agent-name.js';
import { Failed } from '/console/shell/loaded.js';
import { Link } from '/console/shell/router.js';
import { notShown, useAgentPages } from '/console/shell/use-pages.js';

const INTERVAL_MS = 30_000;
const PAGE = 20;

/** @param {{ subject: Subject, may: boolean, changed: () => void }} props */
export function AgentsUnder({ subject, may, changed }) {
  const { pages, error, load } = useAgentPages(`/owner/agents?policy=${subject.id}&limit=${PAGE}`, INTERVAL_MS);
  const [assigning, setAssigning] = useState(false);
  const assigned = () => {
    load(undefined);
    changed();
  };
  return html`
    <section aria-labelledby="under-head">
      <div class="section-head">
        <h2 id="under-head">Agents under it</h2>
        ${may && html`<button type="button" class="compact" id="assign" onClick=${() => setAssigning(true)}>Put agents under it…</button>`}
      </div>
      ${error && html`<${Failed} error=${error} again=${() => load(undefined)} />`}
      ${pages?.agents.length === 0 && html`<p class="quiet" id="none-under">None yet: the policy decides about nobody.</p>`}
      ${
        pages &&
        pages.agents.length > 0 &&
        html`<ul role="list" class="sheet rows" id="under">
          ${pages.agents.map((agent) => {
            const { kind, words } = badgeOf(agent);
            return html`<li class="row line" key=${agent.id}><span><${AgentName} agent=${agent} /> ${agent.parent_agent_id && html`<span class="small quiet">child</span>`}</span><span class="badge" data-kind=${kind}>${words}</span></li>`;
          })}
        </ul>`
      }
      ${pages?.next && html`<p class="more"><button type="button" onClick=${() => load(pages.next ?? undefined)}>Show more (${notShown(pages)} not shown)</button></p>`}
      ${pages && pages.agents.length > 0 && html`<p class="small end"><${Link} to=${`/console/agents?policy=${subject.id}`}>In the table of the agents<//></p>`}
      ${assigning && html`<${AssignDialog} subject=${subject} onClose=${() => setAssigning(false)} onDone=${assigned} />`}
    </section>
  `;
}
