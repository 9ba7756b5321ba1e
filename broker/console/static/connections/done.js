// The page after connecting: the result of the test, and the next step.
/** @typedef {import('../../answers.ts').Tested} Tested */
import { describeTest } from '/console/connections/connection-labels.js';
import { html, useEffect, useId, useRef, useState } from '/console/html.js';
import { pageOf } from '/console/shell/agent-name.js';
import { valueTo } from '/console/shell/fields.js';
import { useLoaded } from '/console/shell/loaded.js';
import { Link } from '/console/shell/router.js';
import { visibleLine } from '/console/visible.js';

/** @param {{ platform: string, connection: { id: string, label: string }, test: Tested, another: () => void }} props */
export function Done({ platform, connection, test, another }) {
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  const { kind, words } = describeTest(test);
  const { account, expires_at, granted_scopes, lacking } = test;
  useEffect(() => heading.current?.focus(), []);
  return html`<section class="sheet done stack" id="done" aria-labelledby="done-title">
    <h2 id="done-title" ref=${heading} tabindex="-1"><span class="theirs">${visibleLine(connection.label)}</span> is connected <span class="badge" data-kind=${kind}>${words}</span></h2>
    <p class="theirs">${visibleLine(test.detail)}</p>
    <dl class="facts">
      <dt>Account</dt><dd>${account === null ? 'The platform does not name it.' : html`<strong class="theirs">${visibleLine(account)}</strong>`}</dd>
      <dt>Ends</dt><dd>${expires_at === null ? 'The platform states no expiry.' : new Date(expires_at).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' })}</dd>
      ${granted_scopes && html`<dt>It granted</dt><dd class="scopes">${granted_scopes.length === 0 ? 'The platform lists no scopes.' : granted_scopes.map((scope, at) => html`${at > 0 && ', '}<code class="theirs" key=${scope}>${visibleLine(scope)}</code>`)}</dd>`}
    </dl>
    ${
      lacking.length > 0 &&
      html`<details class="small"><summary>It is not enough for ${lacking.length} of the scopes that agents can be granted</summary>
        <ul>${lacking.map(({ scope, needs }) => html`<li key=${scope} class="theirs"><code>${visibleLine(scope)}</code> needs ${needs.map(visibleLine).join(' or ')}</li>`)}</ul></details>`
    }
    <${Give} platform=${platform} />
    <div class="buttons">
      <${Link} to="/console/connections" class="button" id="to-connections">To the connections<//>
      <button type="button" onClick=${another}>Another account</button>
    </div>
  </section>`;
}

/** Links to an agent's page, where scopes on the connected platform are granted. @param {{ platform: string }} props */
export function Give({ platform }) {
  const id = useId();
  const agents = useLoaded('/owner/agents?limit=100&sort=name', 60_000).answer?.agents;
  const open = agents?.filter(({ status, parent_agent_id }) => status !== 'revoked' && !parent_agent_id);
  const [chosen, choose] = useState('');
  const agent = chosen || (open?.[0]?.agent_id ?? '');
  if (!open) return null;
  if (open.length === 0)
    return html`<p>No agent may use it yet. <${Link} to="/console/agents/new" class="button primary" id="give-new">Invite an agent<//></p>`;
  return html`<div class="give">
    <label for=${id}>Give it to an agent</label>
    <div class="buttons">
      <select id=${id} data-field="give" onChange=${valueTo(choose)}>
        ${open.map(({ agent_id, name }) => html`<option key=${agent_id} value=${agent_id} selected=${agent === agent_id}>${visibleLine(name)}</option>`)}
      </select>
      <${Link} to=${`${pageOf(agent)}?grant=${encodeURIComponent(platform)}`} class="button primary" id="give">Choose what it may do<//>
    </div>
  </div>`;
}
