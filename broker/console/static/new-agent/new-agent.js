// The page that invites an agent: its name, its grants, and the command line that sets it up on its machine. Open invites are listed below.
/** @typedef {import('../../answers.ts').NewInvite} NewInvite */
import { html, useState } from '/console/html.js';
import { Form } from '/console/new-agent/form.js';
import { Invited } from '/console/new-agent/invited.js';
import { OpenInvites } from '/console/new-agent/open-invites.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Link } from '/console/shell/router.js';
import { useLoaded } from '/console/shell/use-loaded.js';

const EVERY_MS = 3_000;

export function NewAgentPage() {
  const owner = useOwner();
  const may = mayChange(owner);
  const { answer, reload } = useLoaded('/owner/invites', EVERY_MS);
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
