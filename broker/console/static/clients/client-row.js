/** @typedef {import('../../answers.ts').McpAuthorisation} McpAuthorisation */
import { html } from '/console/html.js';
import { AgentName } from '/console/shell/agent-name.js';
import { Ago } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

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
export function ClientRow({ one, may, revoke }) {
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
