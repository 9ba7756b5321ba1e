// The settings page of the organisation, with facts about the installation.
/** @typedef {import('../../answers.ts').Organisation} Organisation */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { Approvals } from '/console/settings/approvals.js';
import { Installation } from '/console/settings/installation.js';
import { Publishing } from '/console/settings/publishing.js';
import { Retention } from '/console/settings/retention.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Command } from '/console/shell/command.js';
import { valueTo } from '/console/shell/fields.js';
import { Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Link } from '/console/shell/router.js';
import { Ago } from '/console/shell/time.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

const INTERVAL_MS = 30_000;

export function SettingsPage() {
  const { answer, error, reload } = useLoaded('/owner/organisation', INTERVAL_MS);
  const owner = useOwner();
  const may = mayChange(owner);
  return html`
    <div class="page-head"><h1>Settings</h1></div>
    <div class="settings stack">
      <p class="quiet theirs">Settings of the organisation ${visibleLine(owner.organisation.name)}. ${may ? 'Changes are recorded in the activity.' : `Your role is ${owner.role}: an admin can change them.`}</p>
      ${error && html`<${Failed} error=${error} again=${reload} />`}
      ${!answer && !error && html`<${Loading} />`}
      <section class="sheet" aria-labelledby="notices-head">
        <h2 id="notices-head">Notices</h2>
        <p>Devices and channels that get notices about held calls.</p>
        <p><${Link} to="/console/notices" id="to-notices-page">Notices<//></p>
      </section>
      ${answer && html`<${Approvals} key=${`${answer.approval_ttl_seconds} ${answer.require_user_verification} ${answer.passkey_deciders}`} organisation=${answer} may=${may} changed=${reload} />`}
      ${answer && html`<${Publishing} published=${answer.publish_identity_documents} may=${may} changed=${reload} />`}
      ${answer && html`<${AutoSuspend} key=${JSON.stringify(answer.auto_suspend)} rule=${answer.auto_suspend} may=${may} changed=${reload} />`}
      ${answer && html`<${Retention} key=${JSON.stringify(answer.retention)} kept=${answer.retention} may=${may} changed=${reload} />`}
      ${
        may &&
        html`<section class="sheet" aria-labelledby="sinks-head">
          <h2 id="sinks-head">Pushing the audit</h2>
          <p>Security tools to which all audit rows are sent as they are recorded.</p>
          <p><${Link} to="/console/audit-sinks" id="to-audit-sinks">Audit sinks<//></p>
        </section>`
      }
      <section class="sheet" aria-labelledby="governance-head">
        <h2 id="governance-head">Governance file</h2>
        <p>All that is governed here as one file: to keep, to review, and to apply.</p>
        <p><${Link} to="/console/governance" id="to-governance">Governance file<//></p>
      </section>
      ${may && html`<${Keys} /><${Installation} />`}
    </div>
  `;
}

// The keys of the installation: the current one, its age, and the command that rotates it.
const SLOW_INTERVAL_MS = 600_000;

const USES = {
  evidence: { title: 'Receipts', words: 'signs each receipt; a new one is published 2 hours before it signs' },
  log: { title: 'Receipt log', words: 'signs the checkpoints of the log, from the next one on' },
  session: { title: 'Owner sessions', words: 'signs the sessions of owners; those who are signed in stay so' },
  secrets: {
    title: 'Secrets sent by agents',
    words:
      'agents encrypt secrets for it; secrets that were encrypted for the earlier key are accepted for another day',
  },
  master: {
    title: 'Master key',
    words: 'encrypts the keys of everything that is stored encrypted; it is kept on the machine, or in its environment',
  },
};

function Keys() {
  const keys = useLoaded('/owner/keys', SLOW_INTERVAL_MS).answer?.in_force;
  return html`<section class="sheet" aria-labelledby="keys">
    <h2 id="keys">Keys</h2>
    <p class="small quiet">They belong to the installation, not to one organisation, so its operator rotates them, on its machine. Each command can be repeated safely. <a href="/docs/operations#signing-keys" target="_blank" rel="noreferrer">What to do first</a>.</p>
    <ul role="list" class="keys" id="keys-in-force">
      ${keys?.map(
        ({ use, kid, since }) => html`<li key=${use} data-use=${use}>
          <p><strong>${USES[use].title}</strong> <span class="small quiet">${USES[use].words}</span></p>
          <p class="small"><code class="theirs">${kid}</code>${since && html`, in force since <${Ago} at=${since} />`}</p>
          <${Command} text=${`npx agent-broker keys rotate ${use}`} />
        </li>`,
      )}
    </ul>
  </section>`;
}

// The setting of how many refused calls suspend an agent automatically.
const DEFAULTS = { refusals: 100, within_seconds: 600 };

/** Fractions are possible: a governance file may set any number of seconds. */
const inMinutes = (/** @type {number} */ seconds) => String(Math.round((seconds / 60) * 100) / 100);

/** @param {{ rule: Organisation['auto_suspend'], may: boolean, changed: () => void }} props */
function AutoSuspend({ rule, may, changed }) {
  const [refusals, setRefusals] = useState(String((rule ?? DEFAULTS).refusals));
  const [minutes, setMinutes] = useState(inMinutes((rule ?? DEFAULTS).within_seconds));
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
