// Transfers agents of one owner to another owner.
/** @typedef {import('../../answers.ts').Member} Member */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Dialog } from '/console/shell/dialog.js';
import { checkedTo, valueTo } from '/console/shell/fields.js';
import { Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

/** Maximum number of agents listed to choose from; all agents can still be transferred in one step. */
const LISTED = 200;

/** @param {{ member: Member, members: readonly Member[], onClose: () => void, onDone: () => void }} props */
export function HandOver({ member, members, onClose, onDone }) {
  const others = members.filter(({ id }) => id !== member.id);
  const [to, setTo] = useState(others[0]?.id ?? '');
  const [all, setAll] = useState(true);
  const [chosen, setChosen] = useState(/** @type {ReadonlySet<string>} */ (new Set()));
  const path = /** @type {const} */ (`/owner/agents?owner=${member.id}&limit=${LISTED}`);
  const { answer, error, reload } = useLoaded(path, 60_000);
  const { busy, problem, run } = useDoing();
  const announce = useAnnounce();
  const agents = answer?.agents.filter((one) => one.parent_agent_id === null && one.status !== 'revoked');
  // Children and revoked agents may fill the page that was read: there are others on further ones.
  const some = agents !== undefined && (agents.length > 0 || answer?.next != null);
  const taker = others.find(({ id }) => id === to);
  const [from, name] = [visibleLine(member.email), visibleLine(taker?.email ?? '')];
  const choose = (/** @type {string} */ id) => (/** @type {boolean} */ checked) =>
    setChosen(new Set(checked ? [...chosen, id] : [...chosen].filter((one) => one !== id)));
  const hand = () =>
    run(async () => {
      const body = { from: member.id, to, ...(!all && { agents: [...chosen] }) };
      const { handed_over: count } = await ask('POST', '/owner/hand-over', body);
      announce(`${count} ${count === 1 ? 'agent is' : 'agents are'} handed over to ${name}.`, 'good');
      onDone();
      onClose();
    });
  return html`<${Dialog} title=${`Hand over agents of ${from}`} onClose=${onClose} onSubmit=${hand}>
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${!agents && !error && html`<${Loading} />`}
    ${agents && !some && html`<p id="no-agents">They have no agents that could be handed over.</p>`}
    ${
      agents &&
      some &&
      html`<div class="field"><label for="hand-to">To whom</label>
          <select id="hand-to" onChange=${valueTo(setTo)}>
            ${others.map(({ id, email, role }) => html`<option key=${id} value=${id} selected=${id === to}>${visibleLine(email)} (${role})</option>`)}
          </select></div>
        <fieldset>
          <legend>Which agents</legend>
          <label class="choice"><input type="radio" name="which" value="all" checked=${all} onChange=${() => setAll(true)} /><span>All that are not revoked${answer?.next ? '' : ` (${agents.length})`}</span></label>
          <label class="choice"><input type="radio" name="which" value="some" checked=${!all} onChange=${() => setAll(false)} /><span>Only these</span></label>
          ${
            !all &&
            html`<ul role="list" class="to-hand">${agents.map(
              (one) =>
                html`<li key=${one.id}><label class="choice"><input type="checkbox" data-agent=${one.agent_id} checked=${chosen.has(one.id)} onChange=${checkedTo(choose(one.id))} /><span class="theirs">${visibleLine(one.name)}</span></label></li>`,
            )}</ul>
            ${answer?.next && html`<p class="quiet small">The first ${LISTED} are listed.</p>`}`
          }
        </fieldset>
        <p class="small">${name} answers for them from then on, also for what waits now. They keep their keys, grants and policies, and go on working. ${taker?.role === 'viewer' && 'A viewer cannot decide: others have to.'} A governance file that names another owner gives them to that one at its next apply.</p>`
    }
    <${Problem} problem=${problem} />
    <div class="buttons">
      <button type="button" id="close-hand-over" onClick=${onClose}>Cancel</button>
      <button type="submit" class="primary" id="hand-over" disabled=${busy || !some || !taker || (!all && chosen.size === 0)}>Hand over</button>
    </div>
  <//>`;
}
