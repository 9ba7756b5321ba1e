// An empty inbox says why it is empty, and what fills it.
/** @typedef {import('../../answers.ts').Agent} Agent */
import { ask } from '/console/api.js';
import { html, useEffect, useState } from '/console/html.js';
import { Empty } from '/console/shell/empty.js';

export function NothingWaits() {
  const [agents, setAgents] = useState(/** @type {Agent[] | undefined} */ (undefined));
  useEffect(() => {
    ask('GET', '/owner/agents').then(
      (answer) => setAgents(answer.agents),
      () => {},
    );
  }, []);
  if (agents?.length === 0)
    return html`<${Empty} title="There are no agents yet">
      <p>An agent acts through this broker with a key of its own. Make one on the machine of the broker:</p>
      <pre class="command">npx agent-broker agent create my-agent</pre>
      <p class="quiet">It prints what to paste into your assistant. What a rule holds will wait here.</p>
    <//>`;
  return html`<${Empty} title="Nothing waits for you">
    <p>When a rule holds a call of an agent, it appears here at once. You can leave this page open: the title counts along.</p>
    <p class="quiet">What was decided is under <a href="/console/activity">Activity</a>.</p>
  <//>`;
}
