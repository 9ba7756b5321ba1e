// The governance file page: the current state as a file, and a file that is reviewed before it is applied.
/** @typedef {import('../../answers.ts').GovernancePlan} GovernancePlan */
/** @typedef {import('../../answers.ts').GovernanceApplied} GovernanceApplied */
/** @typedef {import('/console/governance/references.js').Reference} Reference */
/** @typedef {import('/console/governance/references.js').Sent} Sent */
/** @typedef {import('/console/governance/values.js').Values} Values */
import { ask } from '/console/api.js';
import { Applies } from '/console/governance/applies.js';
import { ApplyDialog } from '/console/governance/apply-dialog.js';
import { Changes, sumOf } from '/console/governance/changes.js';
import { FileErrors } from '/console/governance/file-errors.js';
import { referencesIn } from '/console/governance/references.js';
import { ValueFields } from '/console/governance/values.js';
import { html, useEffect, useRef, useState } from '/console/html.js';
import { Unseen } from '/console/policy/unseen.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Command } from '/console/shell/command.js';
import { FileInput } from '/console/shell/file-input.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

const DEFAULT_NAME = 'governance.yaml';

export function GovernancePage() {
  const owner = useOwner();
  const may = mayChange(owner);
  const announce = useAnnounce();
  const [text, setText] = useState('');
  const [file, setFile] = useState(DEFAULT_NAME);
  const [references, setReferences] = useState(/** @type {readonly Reference[]} */ ([]));
  const [needs, setNeeds] = useState(/** @type {readonly string[]} */ ([]));
  const [values, setValues] = useState(/** @type {Values} */ ({}));
  const [plan, setPlan] = useState(/** @type {GovernancePlan | undefined} */ (undefined));
  const [applied, setApplied] = useState(/** @type {GovernanceApplied | undefined} */ (undefined));
  const [asking, setAsking] = useState(false);
  const [made, setMade] = useState(0);
  const { busy, problem, run, clear } = useDoing();
  const take = (/** @type {string} */ to, /** @type {string} */ from) => {
    setText(to);
    setFile(from);
    setReferences([]);
    setPlan(undefined);
    setApplied(undefined);
    clear();
  };
  const given = (/** @type {readonly Reference[]} */ of) =>
    Object.fromEntries(of.flatMap(({ key }) => (values[key] ? [[key, values[key]]] : [])));
  /** @returns {Sent} */
  const sent = () => ({ text, file, values: given(references), keep_secrets: may });
  const show = (of = { text, file }) =>
    run(async () => {
      setPlan(undefined);
      setApplied(undefined);
      // An owner who may not apply the file cannot give secrets, and does not see which are needed.
      const named = (await referencesOf(of.text)).filter(({ isKey }) => may || isKey);
      setReferences(named);
      const body = { ...of, values: given(named), keep_secrets: may, without_secrets: !may };
      setNeeds(named.map(({ key }) => key));
      const shown = await ask('POST', '/owner/governance/plan', body);
      setNeeds(shown.needs_values);
      setPlan(shown);
    });
  const give = (/** @type {Values} */ to) => {
    setValues(to);
    setPlan(undefined);
  };
  const goBack = (/** @type {string} */ to) => {
    take(to, DEFAULT_NAME);
    document.getElementById('governance-text')?.focus();
    show({ text: to, file: DEFAULT_NAME });
  };
  const done = (/** @type {GovernanceApplied} */ now) => {
    setApplied(now);
    setMade(made + 1);
    setPlan(undefined);
    setValues({});
    setAsking(false);
    announce('The file is in force.', 'good');
  };
  return html`
    <div class="page-head"><h1>Governance file</h1></div>
    <div class="governance stack">
      <p class="quiet">One file says what is governed here: platforms, connections, channels, policies, guardrails, agents and what they are granted. <a href="/docs/governance" target="_blank" rel="noreferrer">What it can say</a>. The command line does the same: <code>agent-broker plan</code>, <code>apply</code> and <code>export</code>.</p>
      <${Present} take=${take} />
      <form class="sheet stack" id="governance-form" aria-labelledby="file-head" onSubmit=${(
        /** @type {Event} */ event,
      ) => {
        event.preventDefault();
        show();
      }}>
        <h2 id="file-head">A file, and what it would change</h2>
        <${FileText} text=${text} file=${file} take=${take} isWrong=${problem !== undefined} />
        ${references.length > 0 && html`<${ValueFields} references=${references} needs=${needs} values=${values} write=${give} />`}
        <${FileErrors} problem=${problem} />
        <div class="buttons"><button type="submit" class="primary" id="show-plan" disabled=${busy || !text.trim()}>${busy ? 'Reading it…' : 'Show what it would change'}</button></div>
      </form>
      ${plan && html`<${Plan} plan=${plan} may=${may} role=${owner.role} apply=${() => setAsking(true)} />`}
      ${applied && html`<${Applied} applied=${applied} />`}
      <${Applies} key=${made} goBack=${goBack} />
    </div>
    ${asking && plan && html`<${ApplyDialog} plan=${plan} sent=${sent()} done=${done} onClose=${() => setAsking(false)} />`}
  `;
}

/** Returns the references in the text. None when it is not YAML: the broker reports the syntax error. @param {string} text */
async function referencesOf(text) {
  const { parse } = await import('/console/vendor/yaml/index.js');
  try {
    return referencesIn(parse(text, { maxAliasCount: 100 }));
  } catch {
    return [];
  }
}

/** @param {{ take: (text: string, file: string) => void }} props */
function Present({ take }) {
  const { busy, problem, run } = useDoing();
  const load = async () => (await ask('GET', '/owner/governance')).text;
  const download = () =>
    run(async () => {
      const address = URL.createObjectURL(new Blob([await load()], { type: 'application/yaml' }));
      const link = document.createElement('a');
      link.href = address;
      link.download = DEFAULT_NAME;
      link.click();
      setTimeout(() => URL.revokeObjectURL(address), 10_000);
    });
  const change = () =>
    run(async () => {
      take(await load(), DEFAULT_NAME);
      document.getElementById('governance-text')?.focus();
    });
  return html`<section class="sheet stack" aria-labelledby="present-head">
    <h2 id="present-head">What is in force now</h2>
    <p>As a file that can be kept, reviewed and applied again. It contains only the names of secrets.</p>
    <div class="buttons">
      <button type="button" id="export-file" disabled=${busy} onClick=${download}>Download it</button>
      <button type="button" id="take-present" disabled=${busy} onClick=${change}>Change it below</button>
    </div>
    <${Problem} problem=${problem} />
  </section>`;
}

/** @param {{ text: string, file: string, take: (text: string, file: string) => void, isWrong: boolean }} props */
function FileText({ text, file, take, isWrong }) {
  const hear = (/** @type {string} */ written, /** @type {string | undefined} */ name) => name && take(written, name);
  return html`
    <div class="field"><label for="governance-file">Choose a file</label>
      <${FileInput} id="governance-file" accept=".yaml,.yml,application/yaml" read=${hear} /></div>
    <div class="field"><label for="governance-text">Or write or paste it here</label>
      <textarea id="governance-text" class="mono" rows="16" spellcheck=${false} autocapitalize="off" aria-describedby="governance-hint" aria-invalid=${isWrong ? true : null}
        value=${text} onInput=${(/** @type {{ currentTarget: HTMLTextAreaElement }} */ { currentTarget }) => take(currentTarget.value, file)}></textarea>
      <p class="hint" id="governance-hint">A section that is left out stays as it is; what a section does not list is removed.</p>
      <${Unseen} text=${text} /></div>
  `;
}

/** @param {{ plan: GovernancePlan, may: boolean, role: string, apply: () => void }} props */
function Plan({ plan: { changes, warnings, needs_values: lacks }, may, role, apply }) {
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => heading.current?.focus(), []);
  return html`<section class="sheet stack" aria-labelledby="plan-head" id="plan">
    <h2 id="plan-head" ref=${heading} tabindex="-1">${changes.length === 0 ? 'It changes nothing' : `It would change: ${sumOf(changes)}`}</h2>
    ${warnings.map((one) => html`<p class="notice theirs" data-kind="wait" key=${one}>${visibleLine(one)}</p>`)}
    ${changes.length > 0 ? html`<${Changes} changes=${changes} id="changes" />` : html`<p>Everything in the file is in force already.</p>`}
    ${
      changes.length > 0 &&
      (may
        ? html`<div class="buttons"><button type="button" class="primary" id="apply" disabled=${lacks.length > 0} onClick=${apply}>Apply it…</button>
          ${lacks.length > 0 && html`<p class="quiet small">To apply it, give these values above and look again: ${lacks.map((one, at) => html`${at > 0 && ', '}<code class="theirs" key=${one}>${visibleLine(one)}</code>`)}.</p>`}</div>`
        : html`<p class="quiet">Your role is ${role}: an admin can apply it.</p>`)
    }
  </section>`;
}

/** @param {{ applied: GovernanceApplied }} props */
function Applied({ applied: { changes, warnings, workloads, bootstrap_tokens: tokens } }) {
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => heading.current?.focus(), []);
  return html`<section class="sheet stack" aria-labelledby="applied-head" id="applied">
    <h2 id="applied-head" ref=${heading} tabindex="-1">In force: ${changes.length === 0 ? 'nothing was left to change' : sumOf(changes)}</h2>
    ${warnings.map((one) => html`<p class="notice theirs" data-kind="wait" key=${one}>${visibleLine(one)}</p>`)}
    ${
      tokens.length > 0 &&
      html`<p>These agents bring their key with a token, which is shown only once and expires after a day:</p>
        ${tokens.map(({ agent, agent_id, token }) => html`<div key=${agent_id} data-token-of=${agent}><p><strong class="theirs">${visibleLine(agent)}</strong> <code>${agent_id}</code></p><${Command} text=${token} /></div>`)}`
    }
    ${
      workloads.length > 0 &&
      html`<p>Tokens of the workloads of these agents are issued for this audience alone:</p>
        ${workloads.map(({ agent, agent_id, audience }) => html`<div key=${agent_id}><p><strong class="theirs">${visibleLine(agent)}</strong></p><${Command} text=${audience} /></div>`)}`
    }
    <p class="quiet small">It is on record in the activity, with the list of changes.</p>
  </section>`;
}
