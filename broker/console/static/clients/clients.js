// The connected MCP clients: who approved each, which agent it acts as, its scopes, its last use; and revoking its access.
/** @typedef {import('../../answers.ts').McpAuthorisation} McpAuthorisation */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { AgentName } from '/console/shell/agent-name.js';
import { Command } from '/console/shell/command.js';
import { openTo } from '/console/shell/fields.js';
import { Empty, Failed, Loading } from '/console/shell/loaded.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Pager, usePage } from '/console/shell/pager.js';
import { Question } from '/console/shell/question.js';
import { Ago } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

const INTERVAL_MS = 15_000;

/**
 * `?agent=<agent_id>`: only clients that act as this agent.
 *
 * @param {{ place: URL }} props
 */
export function ClientsPage({ place }) {
  const owner = useOwner();
  const [leaving, setLeaving] = useState(/** @type {McpAuthorisation | undefined} */ (undefined));
  const [showsOver, setShowsOver] = useState(false);
  const agent = place.searchParams.get('agent');
  const ofAgent = agent ? `&agent=${encodeURIComponent(agent)}` : '';
  const { answer, error, reload, ...pager } = usePage(
    /** @type {const} */ (`/owner/mcp-authorisations?state=live&limit=50${ofAgent}`),
    INTERVAL_MS,
  );
  const { live = 0, over = 0 } = answer?.count ?? {};
  return html`
    <div class="page-head"><h1>MCP clients</h1></div>
    <div class="clients stack">
      <p class="quiet">Applications that you let act as agents of yours, over <code>/mcp</code>. Their names are not verified.
        ${agent && html` Of one agent: <a href="/console/clients">show all</a>.`}</p>
      ${error && html`<${Failed} error=${error} again=${reload} />`}
      ${!answer && !error && html`<${Loading} />`}
      ${answer && live + over === 0 && html`<${NoClients} />`}
      ${answer && live > 0 && html`<${Clients} some=${answer.authorisations} id="clients" revoke=${setLeaving} /><${Pager} ...${pager} />`}
      ${live === 0 && over > 0 && html`<p id="none-live">No client has access now.</p>`}
      ${live > 0 && !mayChange(owner) && html`<p class="quiet small">Your role is ${owner.role}: an admin can revoke access.</p>`}
      ${
        over > 0 &&
        html`<details id="over" onToggle=${openTo(setShowsOver)}>
          <summary>Over (${over})</summary>
          ${showsOver && html`<${ThoseOver} key=${over} ofAgent=${ofAgent} />`}
        </details>`
      }
    </div>
    ${leaving && html`<${Revoke} one=${leaving} onClose=${() => setLeaving(undefined)} onDone=${reload} />`}
  `;
}

/** @param {{ some: McpAuthorisation[], id: string, revoke?: (one: McpAuthorisation) => void }} props */
function Clients({ some, id, revoke }) {
  const owner = useOwner();
  return html`<ul role="list" class="sheet rows" id=${id}>
    ${some.map(
      (one) => html`<${ClientRow} key=${one.id} one=${one} may=${mayChange(owner)} revoke=${() => revoke?.(one)} />`,
    )}
  </ul>`;
}

/** @param {{ ofAgent: string }} props */
function ThoseOver({ ofAgent }) {
  const { answer, error, reload, ...pager } = usePage(
    /** @type {const} */ (`/owner/mcp-authorisations?state=over&limit=50${ofAgent}`),
    INTERVAL_MS,
  );
  return html`
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${!answer && !error && html`<${Loading} />`}
    ${answer && html`<${Clients} some=${answer.authorisations} id="clients-over" />`}
    <${Pager} ...${pager} />
  `;
}

const NoClients = () => html`
  <${Empty} title="No MCP client is connected yet">
    <p>Give one this address. It sends you to a page here, on which you decide:</p>
    <${Command} text=${`claude mcp add --transport http broker ${location.origin}/mcp`} />
  <//>
`;

/** @type {Record<McpAuthorisation['status'], { kind: string, words: string }>} */
const STATUS = {
  live: { kind: 'good', words: 'Has access' },
  ended: { kind: '', words: 'Ended' },
  expired: { kind: '', words: 'Expired' },
};

/** @type {Record<NonNullable<McpAuthorisation['ended_because']>, string>} */
const WHY = {
  owner: 'an owner revoked it.',
  client: 'the client revoked its own access.',
  agent: 'its agent was revoked.',
  reuse:
    'one of its refresh tokens was used twice, so somebody else may have a copy: all tokens that came from it were revoked.',
};

/** @type {Partial<Record<string, string>>} */
const CAN = {
  'mcp:read': 'read what it is granted, and ask for access',
  'mcp:write': 'change and delete what it is granted',
};

/**
 * `may`: whether the viewer may revoke the client's access.
 *
 * @param {{ one: McpAuthorisation, may: boolean, revoke: () => void }} props
 */
function ClientRow({ one, may, revoke }) {
  const { id, status, client, agent, owner_email, created_at, last_used_at, expires_at } = one;
  const name = visibleLine(client.name);
  const { kind, words } = STATUS[status];
  return html`<li class="row" data-client=${id} data-status=${status}>
    <div class="what">
      <p class="name"><strong class="theirs">${name}</strong> <span class="badge" data-kind=${kind}>${words}</span>
        ${status === 'live' && agent.status !== 'active' && html`<span class="badge" data-kind="wait">Its agent is ${agent.status}</span>`}</p>
      <p class="small quiet">
        Acts as <${AgentName} agent=${agent} />${' · '}sends you back to <span class="theirs">${visibleLine(client.redirect_host)}</span>
      </p>
      <p class="small quiet">
        Approved by <span class="theirs">${visibleLine(owner_email)}</span> on <${Day} at=${created_at} />${last_used_at ? html` · last used <${Ago} at=${last_used_at} />` : status === 'live' && ' · not used yet'}${status === 'live' && html` · until <${Day} at=${expires_at} />`}
      </p>
      ${status === 'live' ? html`<${May} one=${one} />` : html`<p class="small why"><${Over} one=${one} /></p>`}
    </div>
    <div class="buttons">
      ${
        may &&
        status === 'live' &&
        html`<button type="button" class="compact danger revoke" onClick=${revoke}>Revoke access…<span class="unseen"> of ${name}</span></button>`
      }
    </div>
  </li>`;
}

/** @param {{ at: string }} props */
const Day = ({ at }) =>
  html`<time datetime=${at}>${new Date(at).toLocaleDateString([], { dateStyle: 'medium' })}</time>`;

/** @param {{ one: McpAuthorisation }} props */
function May({ one: { scopes, grants } }) {
  return html`<p class="small given">
    It may ${scopes.map((scope) => CAN[scope] ?? scope).join('; ')}.
    ${
      grants.length === 0
        ? ' It is granted nothing.'
        : grants.map(
            (on) =>
              html` Granted on <span class="theirs">${visibleLine(on.platformId)}</span>: ${on.scopes.map((scope, at) => html`${at > 0 && ', '}<code class="theirs">${visibleLine(scope)}</code>`)}.`,
          )
    }
  </p>`;
}

/** @param {{ one: McpAuthorisation }} props */
function Over({ one: { status, ended_because, ended_at, expires_at } }) {
  if (status === 'expired') return html`<${Ago} at=${expires_at} />: none of its tokens was valid at that time.`;
  return html`${ended_at && html`<${Ago} at=${ended_at} />: `}${ended_because && WHY[ended_because]}`;
}

/** Asks for confirmation before a client's access is revoked. @param {{ one: McpAuthorisation, onClose: () => void, onDone: () => void }} props */
function Revoke({ one: { id, client, agent }, onClose, onDone }) {
  const name = visibleLine(client.name);
  const revoke = async () => {
    await ask('DELETE', `/owner/mcp-authorisations/${id}`);
    return `The access of ${name} is revoked.`;
  };
  return html`<${Question} title="Revoke this access?" verb="Revoke access" kind="danger solid" id="revoke" work=${revoke} onClose=${onClose} onDone=${onDone}>
    <p><strong class="theirs">${name}</strong> is refused from its next request on. To get access again it has to ask you.</p>
    <p class="quiet small">Its agent <span class="theirs">${visibleLine(agent.name)}</span> stays, with what it may do; other clients that act as it keep their access.</p>
  <//>`;
}
