// Tries the rules on recorded calls.
/** @typedef {import('../../answers.ts').RecordedSimulation} Recorded */
/** @typedef {import('/console/policy/use-trying.js').Trying} Trying */
import { html } from '/console/html.js';
import { Counts, Fate } from '/console/policy/use-trying.js';
import { Warnings } from '/console/policy/warnings.js';
import { pageOf } from '/console/shell/agent-name.js';
import { Link } from '/console/shell/router.js';
import { Ago, exactly } from '/console/shell/time.js';
import { Problem } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

/** Periods to look back, in days. */
const SPANS = /** @type {const} */ ([
  [1, 'Last day'],
  [7, 'Last 7 days'],
  [30, 'Last 30 days'],
]);

/** `whose`: the tried calls, in words. @param {{ trying: Trying, whose: string, disabled: boolean }} props */
export function TryRecorded({ trying, whose, disabled }) {
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
      <summary><strong>${calls === 1 ? '1 call' : `${calls} calls`}</strong> <${Fate} effect=${before} /> → <${Fate} effect=${after} /></summary>
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
