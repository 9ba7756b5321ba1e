// The empty inbox: says why it is empty, and what would fill it.
import { ask } from '/console/api.js';
import { html, useEffect, useState } from '/console/html.js';
import { Command } from '/console/shell/command.js';
import { Demo } from '/console/shell/demo.js';
import { Empty } from '/console/shell/loaded.js';
import { mayChange, mayDecide, useOwner } from '/console/shell/owner.js';
import { Link } from '/console/shell/router.js';

/** `reload` reads the inbox again. @param {{ reload: () => unknown }} props */
export function NothingWaits({ reload }) {
  const owner = useOwner();
  const [isWithout, setWithout] = useState(false);
  useEffect(() => {
    ask('GET', '/owner/agents?limit=1').then(
      ({ agents }) => setWithout(agents.length === 0),
      () => {},
    );
  }, []);
  if (isWithout)
    return html`<${Empty} title="There are no agents yet">
      <p>An agent acts through this broker with its own key. ${mayChange(owner) ? html`<${Link} to="/console/agents/new" id="invite-one">Invite one<//>, or make one` : 'Make one'} on the machine of the broker:</p>
      <${Command} text="npx agent-broker agent create my-agent" />
      <p class="quiet">It prints what to paste into your assistant. Calls that a rule holds appear here.</p>
      <${Demo} shown=${reload} />
    <//>`;
  return html`<${Empty} title=${mayDecide(owner) ? 'Nothing waits for you' : 'Nothing waits'}>
    <p>When a rule holds a call of an agent, it appears here immediately. You can leave this page open: its title shows how many wait.</p>
    <p><${Link} to="/console/notices" id="get-told">Get notices on your phone<//>, or in a channel that your team reads.</p>
    <p class="quiet">What was decided is under <a href="/console/activity">Activity</a>.</p>
    <${Demo} shown=${reload} />
  <//>`;
}
