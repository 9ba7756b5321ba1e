// The command line for each client, shown once; and whether the agent has joined.
/** @typedef {import('../../answers.ts').Invite} Invite */
/** @typedef {import('../../answers.ts').NewInvite} NewInvite */
import { html, useState } from '/console/html.js';
import { bindLine, CLIENTS, connectLine, fileNameOf } from '/console/new-agent/lines.js';
import { pageOf } from '/console/shell/agent-name.js';
import { Command } from '/console/shell/command.js';
import { Link } from '/console/shell/router.js';
import { exactly } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

/** The choice for any program, without a known client. */
const PLAIN = 'plain';
const SDK = 'sdk';

/** `now`: the current state of the invite, without its secret. @param {{ invite: NewInvite, now: Invite | undefined, again: () => void }} props */
export function Invited({ invite, now, again }) {
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
