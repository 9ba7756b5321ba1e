// The page that invites an agent: its name, its grants, and the command line that sets it up on its machine. Open invites are listed below.
/** @typedef {import('../../answers.ts').Invite} Invite */
/** @typedef {import('../../answers.ts').NewInvite} NewInvite */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { Form } from '/console/new-agent/form.js';
import { bindLine, CLIENTS, connectLine, fileNameOf } from '/console/new-agent/lines.js';
import { pageOf } from '/console/shell/agent-name.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Command } from '/console/shell/command.js';
import { useLoaded } from '/console/shell/loaded.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Link } from '/console/shell/router.js';
import { Ago, exactly } from '/console/shell/time.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

const INTERVAL_MS = 3_000;

export function NewAgentPage() {
  const owner = useOwner();
  const may = mayChange(owner);
  const { answer, reload } = useLoaded('/owner/invites', INTERVAL_MS);
  const [made, setMade] = useState(/** @type {NewInvite | undefined} */ (undefined));
  const invites = answer?.invites ?? [];
  const now = made && invites.find(({ id }) => id === made.id);
  const invited = (/** @type {NewInvite} */ invite) => {
    setMade(invite);
    reload();
    scrollTo(0, 0);
  };
  return html`
    <div class="page-head"><div>
      <p class="small"><${Link} to="/console/agents">Agents<//></p>
      <h1>New agent</h1>
    </div></div>
    <div class="stack new-agent">
      ${!may && html`<p class="quiet">Your role is ${owner.role}: an admin can invite agents.</p>`}
      ${may && !made && html`<${Form} invited=${invited} />`}
      ${made && html`<${Invited} invite=${made} now=${now} again=${() => setMade(undefined)} />`}
      <${OpenInvites} invites=${invites.filter(({ status, id }) => status === 'open' && id !== made?.id)} may=${may} changed=${reload} />
    </div>
  `;
}

// The command line for each client, shown once; and whether the agent has joined.
/** The choice for any program, without a known client. */
const PLAIN = 'plain';
const SDK = 'sdk';

/** `now`: the current state of the invite, without its secret. @param {{ invite: NewInvite, now: Invite | undefined, again: () => void }} props */
function Invited({ invite, now, again }) {
  const [client, choose] = useState(/** @type {string} */ (CLIENTS[0][0]));
  const name = visibleLine(invite.agent_name);
  if (now?.agent)
    return html`<section class="sheet part-like stack" id="bound">
      <h2>${name} is there</h2>
      <p>It has brought its key, and may call.</p>
      <div class="buttons"><${Link} to=${pageOf(now.agent)} class="button primary">To ${name}<//> <button type="button" onClick=${again}>Another agent</button></div>
    </section>`;
  const invited = { name: invite.agent_name, url: new URL(invite.bind_url).origin, token: invite.bind_secret };
  const options = [
    ...CLIENTS,
    /** @type {const} */ ([PLAIN, 'Command line']),
    /** @type {const} */ ([SDK, 'Own program']),
  ];
  const isPlain = client === PLAIN || client === SDK;
  const line = `npx ${isPlain ? bindLine(invited) : connectLine({ ...invited, client })}`;
  return html`<section class="sheet part-like stack" id="invited">
    <h2>Run this on the machine where ${name} runs</h2>
    <fieldset>
      <legend class="unseen">For which client</legend>
      <div class="buttons chips-like">
        ${options.map(([id, words]) => html`<button type="button" key=${id} class="compact" data-client=${id} aria-pressed=${id === client} onClick=${() => choose(id)}>${words}</button>`)}
      </div>
    </fieldset>
    <${Command} text=${line} />
    ${
      client === SDK &&
      html`<p class="small">Then give your program the profile that it wrote:</p>
        <${Command} text=${`export AGENT_BROKER_PROFILE="$HOME/.agent-broker/profiles/${fileNameOf(invite.agent_name)}.json"`} />`
    }
    <p class="small">${isPlain ? 'It creates the key on that machine, and writes a profile for it.' : 'It creates the key on that machine, and adds the broker to the configuration of the client.'} The command works once, until ${exactly(invite.expires_at)}. It is shown only once.</p>
    <p class="quiet small" role="status">Waiting for ${name} to bring its key…</p>
    <div class="buttons"><button type="button" onClick=${again}>Another agent</button></div>
  </section>`;
}

/** The list of unused invites; renders nothing when there are none. @param {{ invites: readonly Invite[], may: boolean, changed: () => void }} props */
function OpenInvites({ invites, may, changed }) {
  const { problem, run } = useDoing();
  const announce = useAnnounce();
  if (invites.length === 0) return null;
  const revoke = (/** @type {Invite} */ { id, agent_name }) =>
    run(async () => {
      await ask('DELETE', /** @type {const} */ (`/owner/invites/${id}`));
      announce(`The invite for ${visibleLine(agent_name)} is revoked.`, 'good');
      changed();
    });
  return html`<section aria-labelledby="open-invites">
    <div class="section-head"><h2 id="open-invites">Open invites</h2></div>
    <${Problem} problem=${problem} />
    <ul role="list" class="sheet rows">
      ${invites.map(
        (invite) => html`<li class="row line-row" key=${invite.id} data-invite=${invite.id}>
          <div class="what">
            <p><strong class="theirs">${visibleLine(invite.agent_name)}</strong></p>
            <p class="small quiet">made <${Ago} at=${invite.created_at} /> · until ${exactly(invite.expires_at)}${invite.grants.length > 0 && html` · on <span class="theirs">${invite.grants.map(({ platformId }) => visibleLine(platformId)).join(', ')}</span>`}</p>
          </div>
          ${may && html`<button type="button" class="compact danger" onClick=${() => revoke(invite)}>Revoke<span class="unseen"> the invite for ${invite.agent_name}</span></button>`}
        </li>`,
      )}
    </ul>
  </section>`;
}
