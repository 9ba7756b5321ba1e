// The grants of an agent.
/** @typedef {import('../../answers.ts').Connection} Connection */
/** @typedef {import('../../answers.ts').OwnedGrant} OwnedGrant */
/** @typedef {import('../../answers.ts').WholeAgent} WholeAgent */
import { Day } from '/console/agent/facts.js';
import { None, Section } from '/console/agent/section.js';
import { isOfPeople, STATE } from '/console/connections/connection-labels.js';
import { GrantDialog } from '/console/grants/grant-dialog.js';
import { RemoveDialog } from '/console/grants/remove-dialog.js';
import { html, useEffect, useState } from '/console/html.js';
import { pageOf } from '/console/shell/agent-name.js';
import { Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { Link, navigate } from '/console/shell/router.js';
import { Ago } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

const INTERVAL_MS = 10_000;
const SLOW_INTERVAL_MS = 60_000;

/** `may`: whether the viewer may change the grants. `wanted`: the platform for which a link opens the grant dialog. The grants of a child agent come from its parent. @param {{ agent: WholeAgent, may: boolean, wanted: string | null }} props */
export function Grants({ agent, may, wanted }) {
  const path = /** @type {const} */ (`/owner/agents/${agent.agent_id}/grants`);
  const { answer, error, reload } = useLoaded(path, INTERVAL_MS);
  const [editing, edit] = useState(
    /** @type {{ grant?: OwnedGrant, platform?: string } | undefined} */ (
      may && wanted ? { platform: wanted } : undefined
    ),
  );
  useEffect(() => {
    // The dialog opens once: the parameter is removed, so that a reload does not open it again.
    if (wanted) navigate(pageOf(agent.agent_id), { replace: true });
  }, [wanted]);
  const connections = useLoaded('/owner/connections', SLOW_INTERVAL_MS).answer?.connections ?? [];
  const [removing, remove] = useState(/** @type {OwnedGrant | undefined} */ (undefined));
  const grants = answer?.grants;
  const changes = may && agent.status !== 'revoked' && !agent.parent_agent_id;
  const add = html`<button type="button" class="compact" id="add-grant" onClick=${() => edit({})}>Grant something…</button>`;
  return html`<${Section} id="grants" title="Grants" action=${changes && add}>
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${!grants && !error && html`<${Loading} />`}
    ${grants?.length === 0 && html`<${None}>${agent.parent_agent_id ? 'It may do nothing.' : 'It is granted nothing: every call is refused until somebody grants it something.'}<//>`}
    ${
      grants &&
      grants.length > 0 &&
      html`<ul role="list" class="sheet rows">
        ${grants.map(
          (grant) => html`<li class="row grant" key=${grant.grant_id} data-grant=${grant.platform}>
            <${GrantShown} agent=${agent} grant=${grant} connections=${connections} />
            ${
              changes &&
              html`<div class="buttons">
                <button type="button" class="compact" data-verb="change" onClick=${() => edit({ grant })}>Change…<span class="unseen"> the grant on ${grant.platform}</span></button>
                <button type="button" class="compact danger" data-verb="remove" onClick=${() => remove(grant)}>Remove…<span class="unseen"> the grant on ${grant.platform}</span></button>
              </div>`
            }
          </li>`,
        )}
      </ul>`
    }
    ${editing && grants && changes && html`<${GrantDialog} agent=${agent} wanted=${editing.platform} grant=${editing.grant} grants=${grants} onClose=${() => edit(undefined)} onDone=${reload} />`}
    ${removing && grants && html`<${RemoveDialog} agent=${agent} grant=${removing} others=${grants.filter(({ platform }) => platform === removing.platform).length > 1} onClose=${() => remove(undefined)} onDone=${reload} />`}
  <//>`;
}

/** @param {{ agent: WholeAgent, grant: OwnedGrant, connections: readonly Connection[] }} props */
function GrantShown({ agent, grant, connections }) {
  const { platform, connection, scopes, require_approval, expires_at, expired } = grant;
  const used = connections.find((one) =>
    connection ? one.id === connection.connection_id : one.platform === platform && one.default,
  );
  const state = used && !isOfPeople(used) && STATE[used.state];
  return html`<div class="what">
    <p class="name">
      <strong class="theirs">${visibleLine(platform)}</strong>
      ${require_approval && html`<span class="badge" data-kind="wait">Every call waits</span>`}
      ${expired && html`<span class="badge" data-kind="bad">Expired</span>`}
      ${state && html`<span class="badge connection-state" data-kind=${state.kind}>Connection: ${state.words.slice(0, 1).toLowerCase()}${state.words.slice(1)}</span>`}
    </p>
    <p class="small scopes">${scopes.map((scope) => html`<code class="theirs" key=${scope}>${visibleLine(scope)}</code>`)}</p>
    <p class="small quiet">
      <${Link} to=${state ? `/console/connections?connect=${used.id}` : '/console/connections'}>${connection ? html`connection <span class="theirs">${visibleLine(connection.label ?? connection.connection_id)}</span>` : 'the default connection'}<//>
      ${' · '}<${LastUse} agent=${agent} platform=${platform} />${' · '}${expires_at ? html`${expired ? 'ended' : 'until'} <${Day} at=${expires_at} />` : 'does not expire'}
    </p>
    ${describeLimits(grant).map((words) => html`<p class="small theirs" key=${words}>${words}</p>`)}
  </div>`;
}

/** When the agent last called the platform, regardless of the result. @param {{ agent: WholeAgent, platform: string }} props */
function LastUse({ agent: { id }, platform }) {
  const path = /** @type {const} */ (
    `/owner/audit?agent=${id}&platform=${encodeURIComponent(platform)}&kind=action&limit=1`
  );
  const last = useLoaded(path, SLOW_INTERVAL_MS).answer?.rows[0];
  return last ? html`last call there <${Ago} at=${last.created_at} />` : 'no call there lately';
}

/**
 * Returns the limits of a grant beyond its scopes, one sentence each.
 *
 * @param {Pick<OwnedGrant, 'repos' | 'refs' | 'ref_changes' | 'recipients' | 'allow_repo_creation'>} grant
 */
function describeLimits({ repos, refs, ref_changes, recipients, allow_repo_creation }) {
  const list = (/** @type {readonly string[]} */ some) => some.map(visibleLine).join(', ');
  return [
    repos && (repos.length > 0 ? `Only in the repositories ${list(repos)}.` : 'In no repository.'),
    allow_repo_creation && 'It may create repositories under their owners.',
    refs && (refs.length > 0 ? `Only to the branches and tags ${list(refs)}.` : 'To no branch or tag.'),
    ref_changes &&
      (ref_changes.length > 0
        ? `Of branches and tags it may only ${list(ref_changes)}.`
        : 'It may change no branch or tag.'),
    recipients && (recipients.length > 0 ? `Only to the recipients ${list(recipients)}.` : 'To no recipient.'),
  ].filter((words) => typeof words === 'string');
}
