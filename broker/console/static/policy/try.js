// Tries the rules before they are in force.
/** @typedef {import('../../answers.ts').Policy} Policy */
/** @typedef {import('/console/policies/effects.js').Rule} Rule */
/** @typedef {import('/console/policy/known.js').Known} Known */
/** @typedef {import('/console/policy/subject.js').Subject} Subject */
/** @typedef {import('/console/policy/use-trying.js').Trying} Trying */
import { html, useEffect, useState } from '/console/html.js';
import { TryOne } from '/console/policy/try-one.js';
import { TryRecorded } from '/console/policy/try-recorded.js';
import { Counts } from '/console/policy/use-trying.js';
import { Warnings } from '/console/policy/warnings.js';
import { valueTo } from '/console/shell/fields.js';
import { Problem } from '/console/shell/use-doing.js';
import { useLoaded } from '/console/shell/use-loaded.js';
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
