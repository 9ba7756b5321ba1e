// Tries the rules before they are in force.
/** @typedef {import('../../answers.ts').RecordedSimulation} Recorded */
/** @typedef {import('/console/policy/use-trying.js').Trying} Trying */
/** @typedef {import('../../answers.ts').Policy} Policy */
/** @typedef {import('/console/policies/effects.js').Rule} Rule */
/** @typedef {import('/console/policy/known.js').Known} Known */
/** @typedef {import('/console/policy/subject.js').Subject} Subject */
import { html, useEffect, useState } from '/console/html.js';
import { TryOne } from '/console/policy/try-one.js';
import { Counts, ResultText } from '/console/policy/use-trying.js';
import { Warnings } from '/console/policy/warnings.js';
import { pageOf } from '/console/shell/agent-name.js';
import { valueTo } from '/console/shell/fields.js';
import { useLoaded } from '/console/shell/loaded.js';
import { Link } from '/console/shell/router.js';
import { Ago, exactly } from '/console/shell/time.js';
import { Problem } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

/** Selects the policy on whose agents' calls a new policy without agents is tried. @param {Subject} subject */
export function useWhose({ kind, id, version }) {
  const fresh = kind === 'policy' && version === 0;
  const policies = useLoaded('/owner/policies', 60_000).answer?.policies ?? [];
  const [chosen, choose] = useState('');
  const most = policies.reduce(
    (/** @type {Policy | undefined} */ a, b) => (a && a.agents >= b.agents ? a : b),
    undefined,
  );
  useEffect(() => {
    if (chosen === '' && most) choose(most.id);
  }, [most?.id]);
  return { as: fresh ? chosen || undefined : kind === 'policy' ? id : undefined, fresh, policies, choose };
}

/** @typedef {ReturnType<typeof useWhose>} Whose */

/** @param {{ subject: Subject, rules: readonly Rule[], known: Known, trying: Trying, whose: Whose, disabled: boolean, refused: (thrown: unknown) => void }} props */
export function Try({ subject, rules, known, trying, whose, disabled, refused }) {
  const { as, fresh, policies, choose } = whose;
  const name = visibleLine(policies.find(({ id }) => id === as)?.name ?? '');
  const calls =
    subject.kind === 'guardrails'
      ? 'the calls of every agent'
      : fresh
        ? `the calls of the agents that are under ${name} now`
        : 'the calls of the agents under it';
  return html`
    <section aria-labelledby="try-head" id="try">
      <div class="section-head"><h2 id="try-head">Try these rules</h2></div>
      ${
        fresh &&
        policies.length > 0 &&
        html`<div class="field try-as">
          <label for="try-as">As if they were the rules of</label>
          <select id="try-as" onChange=${valueTo(choose)}>${policies.map(({ id, name: words, agents }) => html`<option key=${id} value=${id} selected=${id === as}>${visibleLine(words)} (${agents === 1 ? '1 agent' : `${agents} agents`})</option>`)}</select>
        </div>`
      }
      <div class="tries">
        ${fresh && as === undefined ? html`<p class="sheet none">There is no policy yet whose calls could be tried.</p>` : html`<${TryRecorded} trying=${trying} whose=${calls} disabled=${disabled} />`}
        <${TryOne} subject=${subject} rules=${rules} known=${known} disabled=${disabled} refused=${refused} />
      </div>
    </section>
  `;
}

/** The result of the last try of the rules to save, or a button to try them. @param {{ trying: Trying, possible: boolean }} props */
export function LastTry({ trying: { tried, isCurrent, busy, problem, run }, possible }) {
  if (tried && isCurrent)
    return html`<div class="last-try" id="last-try"><${Counts} tried=${tried} /><${Warnings} warnings=${tried.answer.warnings} id="save-warnings" /></div>`;
  if (!possible) return null;
  return html`<div class="last-try" id="last-try">
    <p>${tried ? 'The rules have changed since they were tried.' : 'These rules were not tried.'}</p>
    <button type="button" class="compact" id="try-now" disabled=${busy} onClick=${() => run(7)}>${busy ? 'Trying…' : 'Try on the last 7 days'}</button>
    <${Problem} problem=${problem} />
  </div>`;
}

// Tries the rules on recorded calls.
/** Periods to look back, in days. */
const SPANS = /** @type {const} */ ([
  [1, 'Last day'],
  [7, 'Last 7 days'],
  [30, 'Last 30 days'],
]);

/** `whose`: the tried calls, in words. @param {{ trying: Trying, whose: string, disabled: boolean }} props */
function TryRecorded({ trying, whose, disabled }) {
  const { tried, isCurrent, busy, problem, run } = trying;
  return html`
    <section class="sheet part-like" aria-labelledby="recorded-head">
      <h3 id="recorded-head">On recorded calls</h3>
      <p class="small quiet">What these rules would have decided on ${whose}. Nothing is sent or changed.</p>
      <div class="buttons" id="spans">
        ${SPANS.map(([days, words]) => html`<button type="button" key=${days} data-days=${days} disabled=${busy || disabled} onClick=${() => run(days)}>${words}</button>`)}
        ${busy && html`<span class="small quiet" role="status">Trying…</span>`}
      </div>
      <${Problem} problem=${problem} />
      ${tried && html`<div id="tried" data-current=${isCurrent}>${!isCurrent && html`<p class="notice" data-kind="wait"><span>The rules have changed since this try.</span></p>`}<${Result} trying=${trying} /></div>`}
    </section>
  `;
}

/** @param {{ trying: Trying }} props */
function Result({ trying: { tried } }) {
  if (!tried) return null;
  const { changes, complete, since, cannot_tell: untold, warnings } = tried.answer;
  return html`
    <div class="stack" aria-live="polite">
      <${Counts} tried=${tried} />
      ${!complete && html`<p class="small quiet">There were too many calls to check all: those since ${exactly(since)} were checked.</p>`}
      ${untold > 0 && html`<p class="small quiet">The outcome is unknown where a condition reads what is not recorded: query, headers, body, the person, or first times. Held calls whose request is still kept are judged in full.</p>`}
      ${changes.map((change) => html`<${Change} key=${`${change.before} ${change.after}`} change=${change} />`)}
      <${Warnings} warnings=${warnings} />
    </div>
  `;
}

/** @param {{ change: Recorded['changes'][number] }} props */
function Change({ change: { before, after, calls, examples } }) {
  return html`
    <details class="change" data-change=${`${before} ${after}`} open>
      <summary><strong>${calls === 1 ? '1 call' : `${calls} calls`}</strong> <${ResultText} effect=${before} /> → <${ResultText} effect=${after} /></summary>
      <ul role="list">
        ${examples.map(
          (one) => html`<li key=${one.audit_id}>
            <p class="theirs"><code>${one.method} ${visibleLine(one.path)}</code> on ${visibleLine(one.platform)}</p>
            <p class="small quiet theirs"><${Link} to=${pageOf(one.agent_id)}>${visibleLine(one.agent_name)}<//> · <${Ago} at=${one.created_at} />${one.rule_after && html` · by ${one.rule_after.source} ${visibleLine(one.rule_after.name)}`} · <${Link} to=${`/console/activity?words=${one.audit_id}`}>Activity<span class="unseen"> of this call</span><//></p>
          </li>`,
        )}
        ${calls > examples.length && html`<li class="small quiet">And ${calls - examples.length} more like these.</li>`}
      </ul>
    </details>
  `;
}
