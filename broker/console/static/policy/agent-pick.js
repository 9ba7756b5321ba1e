// Picks one of many agents by name.
/** @typedef {import('../../answers.ts').Agent} Agent */
import { ask } from '/console/api.js';
import { html, useEffect, useState } from '/console/html.js';
import { OptionList, useOptions } from '/console/policy/options.js';
import { valueTo } from '/console/shell/fields.js';
import { visibleLine } from '/console/visible.js';

const PAGE = 20;
const DEBOUNCE_MS = 150;

/** `policyId`: an agent under this policy is preselected, if one exists. @param {{ policyId: string | undefined, agent: Agent | undefined, choose: (agent: Agent | undefined) => void }} props */
export function AgentPick({ policyId, agent, choose }) {
  const [text, setText] = useState('');
  const [found, setFound] = useState(/** @type {Agent[]} */ ([]));
  useEffect(() => {
    const timer = setTimeout(async () => {
      const { agents } = await ask('GET', `/owner/agents?${new URLSearchParams({ q: text, limit: String(PAGE) })}`);
      setFound(agents);
    }, DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  useEffect(() => {
    const query = policyId === undefined ? '' : `policy=${policyId}&`;
    ask('GET', `/owner/agents?${query}limit=1`).then(
      ({ agents }) => agents[0] && choose(agents[0]),
      () => {},
    );
  }, [policyId]);
  const take = (/** @type {string} */ id) => {
    choose(found.find(({ agent_id }) => agent_id === id));
    setText('');
    show(false);
  };
  const options = found.map(({ agent_id, name }) => ({ value: agent_id, words: name }));
  const { pressed, isOpen, active, list, show } = useOptions({ id: 'try-agent', options, take });
  return html`
    <div class="field" data-field="agent">
      <label for="try-agent">Agent</label>
      <p class="theirs" id="tried-agent">${agent ? html`${visibleLine(agent.name)} <code class="small quiet">${agent.agent_id}</code>` : html`<span class="quiet">None chosen</span>`}</p>
      <div class="combo">
        <input id="try-agent" role="combobox" autocomplete="off" placeholder="Another agent: name or id" aria-autocomplete="list" aria-expanded=${isOpen}
          aria-controls=${isOpen ? list.id : null} aria-activedescendant=${active} value=${text}
          onInput=${valueTo((value) => {
            setText(value);
            show(true);
          })} onKeyDown=${pressed} onClick=${() => show(true)} onBlur=${() => show(false)} />
        ${isOpen && html`<${OptionList} ...${list} label="Agents" />`}
      </div>
    </div>
  `;
}
