// The setting of how many refused calls suspend an agent automatically.
/** @typedef {import('../../answers.ts').Organisation} Organisation */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { valueTo } from '/console/shell/fields.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';

const USUAL = { refusals: 100, within_seconds: 600 };

/** Fractions are possible: a governance file may set any number of seconds. */
const inMinutes = (/** @type {number} */ seconds) => String(Math.round((seconds / 60) * 100) / 100);

/** @param {{ rule: Organisation['auto_suspend'], may: boolean, changed: () => void }} props */
export function AutoSuspend({ rule, may, changed }) {
  const [refusals, setRefusals] = useState(String((rule ?? USUAL).refusals));
  const [minutes, setMinutes] = useState(inMinutes((rule ?? USUAL).within_seconds));
  const { busy, problem, run } = useDoing();
  const announce = useAnnounce();
  const set = async (/** @type {Organisation['auto_suspend']} */ next) => {
    await run(async () => {
      await ask('POST', '/owner/organisation', { auto_suspend: next });
      announce(next ? 'The rule is in force.' : 'The rule is off.', 'good');
    });
    changed();
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    set({ refusals: Number(refusals), within_seconds: Math.round(Number(minutes) * 60) });
  };
  return html`
    <section class="sheet" aria-labelledby="auto-suspend">
      <h2 id="auto-suspend">Agents that are refused too often <span class="badge" id="rule" data-kind=${rule ? 'good' : ''}>${rule ? 'On' : 'Off'}</span></h2>
      <p>${
        rule
          ? `After ${rule.refusals} refused calls within ${inMinutes(rule.within_seconds)} min an agent is suspended, until somebody resumes it.`
          : 'The number of refused calls is not limited. With a rule, an agent with too many of them is suspended until somebody resumes it.'
      } Only calls of the agent itself, and of its children, count.</p>
      ${
        may &&
        html`<form onSubmit=${submit}>
          <div class="rule">
            <label for="refusals">Refused calls</label>
            <input id="refusals" type="number" min="3" max="10000" required value=${refusals} onInput=${valueTo(setRefusals)} />
            <label for="within">within (minutes)</label>
            <input id="within" type="number" min="0.2" max="1440" step="any" required value=${minutes} onInput=${valueTo(setMinutes)} />
            <button type="submit" id="state-rule" disabled=${busy}>${rule ? 'Change the rule' : 'Turn the rule on'}</button>
            ${rule && html`<button type="button" id="no-rule" disabled=${busy} onClick=${() => set(null)}>Turn it off</button>`}
          </div>
        </form>`
      }
      <${Problem} problem=${problem} />
    </section>
  `;
}
