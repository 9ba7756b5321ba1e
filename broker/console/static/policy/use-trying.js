// State of trying rules that are not in force: the last result, and the rules that it is for.
/** @typedef {import('../../answers.ts').RecordedSimulation} Recorded */
/** @typedef {import('../../answers.ts').GuardrailRules} GuardrailRules */
/** @typedef {import('../../answers.ts').PolicyRules} PolicyRules */
/** @typedef {import('/console/policies/effects.js').Rule} Rule */
/** @typedef {import('/console/policy/subject.js').Subject} Subject */
/** `rules`: the tried rules. @typedef {{ rules: readonly Rule[], days: number, answer: Recorded }} Tried */
import { asError, ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { EFFECTS } from '/console/policies/effects.js';
import { isSame } from '/console/policy/differ.js';

/**
 * Returns the rules as the body of the routes for trying.
 *
 * @param {Subject} subject
 * @param {readonly Rule[]} rules
 */
export const proposed = ({ kind }, rules) =>
  kind === 'guardrails'
    ? { guardrails: /** @type {GuardrailRules} */ (/** @type {unknown} */ (rules)) }
    : { policy_rules: /** @type {PolicyRules} */ (/** @type {unknown} */ (rules)) };

/**
 * `as`: the id of the policy whose agents the rules are tried on. `refused(thrown)` receives the refusal of a try.
 *
 * @param {{ subject: Subject, rules: readonly Rule[], as: string | undefined, refused: (thrown: unknown) => void }} given
 */
export function useTrying({ subject, rules, as, refused }) {
  const [tried, setTried] = useState(/** @type {Tried | undefined} */ (undefined));
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(/** @type {Error | undefined} */ (undefined));
  const run = async (/** @type {number} */ days) => {
    if (busy) return;
    setBusy(true);
    setProblem(undefined);
    try {
      const whose = subject.kind === 'policy' && as !== undefined ? { policy: as } : {};
      const answer = await ask('POST', '/owner/simulate/recorded', { ...whose, ...proposed(subject, rules), days });
      setTried({ rules, days, answer });
    } catch (thrown) {
      refused(thrown);
      setProblem(asError(thrown));
    }
    setBusy(false);
  };
  const isCurrent = tried !== undefined && isSame(tried.rules, rules);
  return { tried, isCurrent, busy, problem, run };
}

/** @typedef {ReturnType<typeof useTrying>} Trying */

/** Results of calls under rules, in words. @type {Readonly<Record<Recorded['changes'][number]['before'], string>>} */
const RESULT_TEXTS = {
  allow: 'made',
  require_approval: 'waits for a person',
  deny: 'refused',
  cannot_tell: 'unknown',
};

/** A result as a badge. @param {{ effect: Recorded['changes'][number]['before'] }} props */
export const ResultText = ({ effect }) =>
  html`<span class="badge" data-kind=${EFFECTS[effect]?.kind ?? ''}>${RESULT_TEXTS[effect]}</span>`;

/**
 * The counts of a try, on one line.
 *
 * @param {{ tried: Tried }} props
 */
export function Counts({ tried: { days, answer } }) {
  const { calls, same, changed, cannot_tell: untold } = answer;
  const span = days === 1 ? 'the last day' : `the last ${days} days`;
  if (calls === 0)
    return html`<p class="counts" data-calls="0">There is no call of these agents on record in ${span}.</p>`;
  return html`<p class="counts" data-calls=${calls}>
    Of ${calls === 1 ? '1 call' : `${calls} calls`} in ${span} <strong>${changed} would change</strong>, ${same} stay as they are${untold > 0 && html`, and for <strong>${untold} the outcome is unknown</strong>`}.
  </p>`;
}
