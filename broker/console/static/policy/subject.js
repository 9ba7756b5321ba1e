// The subject of the page: a policy, or the guardrails.
/** @typedef {import('../../answers.ts').PolicyRules} PolicyRules */
/** @typedef {import('../../answers.ts').GuardrailRules} GuardrailRules */
/** @typedef {import('/console/policies/effects.js').Kind} Kind */
/** @typedef {import('/console/policies/effects.js').Rule} Rule */
/** `version` 0: not saved yet. @typedef {{ kind: Kind, id: string, name: string, version: number, rules: Rule[], words: string[], agents: number }} Subject */
/** @typedef {{ version: number, warnings: string[], name: string, id: string }} Saved */
import { ask } from '/console/api.js';
import { GUARDRAILS } from '/console/policies/place.js';
import { useLoaded } from '/console/shell/loaded.js';

const INTERVAL_MS = 15_000;

/**
 * @param {string} named the last segment of the address: `guardrails`, the name of a policy, or its id
 * @returns {{ subject: Subject | undefined, error: Error | undefined, reload: () => Promise<void> }}
 */
export function useSubject(named) {
  const path = /** @type {'/owner/policies/x' | '/owner/guardrails'} */ (
    named === GUARDRAILS ? '/owner/guardrails' : `/owner/policies/${encodeURIComponent(named)}`
  );
  const { answer, error, reload } = useLoaded(path, INTERVAL_MS);
  return { subject: answer && subjectOf(answer), error, reload };
}

/**
 * @param {import('../../answers.ts').Answer<'GET', '/owner/policies/x' | '/owner/guardrails'>} answer
 * @returns {Subject}
 */
function subjectOf(answer) {
  const { version, words } = answer;
  if ('guardrails' in answer)
    return { ...NO_GUARDRAILS, version, words, rules: /** @type {Rule[]} */ (answer.guardrails) };
  const { id, name, agents } = answer;
  return { kind: 'policy', id, name, version, words, agents, rules: /** @type {Rule[]} */ (answer.rules) };
}

/** @type {Subject} */
const NO_GUARDRAILS = {
  kind: 'guardrails',
  id: GUARDRAILS,
  name: 'Guardrails',
  version: 0,
  rules: [],
  words: [],
  agents: 0,
};

/**
 * Saves rules. Throws Refused: `conflict` when the version in force is not `subject.version`.
 *
 * @param {Subject} subject
 * @param {unknown} rules
 * @returns {Promise<Saved>}
 */
export async function save({ kind, id, name, version }, rules) {
  if (kind === 'guardrails') {
    const guardrails = /** @type {GuardrailRules} */ (rules);
    return { id, name, ...(await ask('POST', '/owner/guardrails', { guardrails, version })) };
  }
  const asked = /** @type {PolicyRules} */ (rules);
  if (version === 0) return await ask('POST', '/owner/policies', { name, rules: asked });
  return await ask('POST', /** @type {'/owner/policies/x'} */ (`/owner/policies/${id}`), { rules: asked, version });
}
