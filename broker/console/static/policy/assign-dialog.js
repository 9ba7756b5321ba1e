// Assigns agents to a policy.
/** @typedef {import('../../answers.ts').Agent} Agent */
/** @typedef {import('/console/policy/subject.js').Subject} Subject */
import { asError, ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Dialog } from '/console/shell/dialog.js';
import { checkedTo, valueTo } from '/console/shell/fields.js';
import { Failed } from '/console/shell/loaded.js';
import { useGone } from '/console/shell/use-doing.js';
import { notShown, useAgentPages } from '/console/shell/use-pages.js';
import { visibleLine } from '/console/visible.js';

const INTERVAL_MS = 60_000;
const PAGE = 20;

/** @param {{ subject: Subject, onClose: () => void, onDone: () => void }} props */
export function AssignDialog({ subject, onClose, onDone }) {
  const [words, setWords] = useState('');
  const { pages, error, load } = useAgentPages(
    `/owner/agents?${new URLSearchParams({ q: words, limit: String(PAGE) })}`,
    INTERVAL_MS,
  );
  const [chosen, setChosen] = useState(/** @type {ReadonlyMap<string, Agent>} */ (new Map()));
  const [busy, setBusy] = useState(false);
  const [problems, setProblems] = useState(/** @type {string[]} */ ([]));
  const announce = useAnnounce();
  const gone = useGone();
  const name = visibleLine(subject.name);
  // A child agent has its parent's policy, and a revoked agent has none.
  const offered =
    pages?.agents.filter(({ parent_agent_id, status }) => parent_agent_id === null && status !== 'revoked') ?? [];
  const set = (/** @type {Agent} */ agent, /** @type {boolean} */ is) =>
    setChosen((before) => {
      const after = new Map(before);
      if (is) after.set(agent.id, agent);
      else after.delete(agent.id);
      return after;
    });
  const assign = async () => {
    if (busy || chosen.size === 0) return;
    setBusy(true);
    const left = new Map(chosen);
    /** @type {string[]} */
    const failed = [];
    for (const agent of chosen.values())
      try {
        await ask('POST', /** @type {const} */ (`/owner/agents/${agent.agent_id}/policy`), { policy: subject.id });
        left.delete(agent.id);
      } catch (thrown) {
        failed.push(`${visibleLine(agent.name)}: ${asError(thrown).message}`);
      }
    const done = chosen.size - left.size;
    setChosen(left);
    setProblems(failed);
    setBusy(false);
    if (done > 0) {
      announce(`${done === 1 ? 'One agent is' : `${done} agents are`} under ${name} from the next call on.`, 'good');
      onDone();
    }
    if (gone.current && failed.length > 0) announce(failed.join(' '), 'bad');
    if (!gone.current && failed.length === 0) onClose();
  };
  return html`
    <${Dialog} title=${`Put agents under ${name}`} onClose=${onClose} onSubmit=${assign}>
      <p class="small quiet">Its rules decide from their next call on, instead of those of the policy that they are under now. What they were granted stays.</p>
      <div class="field">
        <label for="agents-search">Search</label>
        <input id="agents-search" type="search" placeholder="Name, id, owner or policy" value=${words} onInput=${valueTo(setWords)} />
      </div>
      ${error && html`<${Failed} error=${error} again=${() => load(undefined)} />`}
      <fieldset class="picked">
        <legend class="unseen">Agents</legend>
        ${offered.map(
          (agent) => html`<label class="choice" key=${agent.id}>
            <input type="checkbox" data-agent=${agent.agent_id} disabled=${agent.policy_id === subject.id} checked=${chosen.has(agent.id) || agent.policy_id === subject.id} onChange=${checkedTo((is) => set(agent, is))} />
            <span class="theirs">${visibleLine(agent.name)} <code class="small quiet">${agent.agent_id}</code>${agent.policy_id === subject.id && html` <span class="small quiet">under it already</span>`}</span>
          </label>`,
        )}
        ${pages && offered.length === 0 && html`<p class="quiet small">${words ? 'No agent is found by that.' : 'There are no agents yet.'}</p>`}
      </fieldset>
      ${pages?.next && html`<p class="small quiet">${notShown(pages)} more: search to find them. <button type="button" class="compact plain" onClick=${() => load(pages.next ?? undefined)}>Show more</button></p>`}
      ${problems.map((problem) => html`<p class="notice" data-kind="bad" role="alert" key=${problem}>${problem}</p>`)}
      <div class="buttons">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="primary" id="put-under" disabled=${busy || chosen.size === 0}>${chosen.size > 1 ? `Put ${chosen.size} agents under it` : 'Put under it'}</button>
      </div>
    <//>
  `;
}
