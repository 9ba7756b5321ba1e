// Assigns the broker's errors about rules to the fields that they concern.
/** @typedef {import('/console/policy/draft.js').Card} Card */
/** @typedef {import('/console/policies/effects.js').Rule} Rule */
/** Errors by field; '': about the rule as a whole. `rule`: the rule as it was sent. @typedef {{ rule: Rule, fields: Record<string, string[]> }} Wrong */
/** `of`: errors by card key. `rest`: errors about no rule in particular. @typedef {{ of: ReadonlyMap<number, Wrong>, rest: string[], all: string[] }} Problems */
import { Refused } from '/console/api.js';

const PLACED = /^(?:rules|guardrails|policy_rules)\[(\d+)\](?:\.(\w+))?(?:\.\w+|\[[^\]]*\])*: ([\s\S]*)$/;

/** @type {Problems} */
export const NONE = { of: new Map(), rest: [], all: [] };

/**
 * Returns the problems in a refusal, by the keys of the sent cards; undefined when the refusal is about something else.
 *
 * @param {unknown} thrown
 * @param {readonly Card[]} cards
 * @returns {Problems | undefined}
 */
export function problemsIn(thrown, cards) {
  if (!(thrown instanceof Refused)) return undefined;
  const { problems } = /** @type {{ problems?: unknown }} */ (thrown.answer);
  if (!Array.isArray(problems)) return undefined;
  const all = problems.map(String);
  /** @type {Map<number, Wrong>} */
  const of = new Map();
  const rest = all.filter((problem) => {
    const [, at = '', field = '', message = ''] = PLACED.exec(problem) ?? [];
    const card = at === '' ? undefined : cards[Number(at)];
    if (!card) return true;
    const wrong = of.get(card.key) ?? { rule: card.rule, fields: {} };
    const known = FIELDS.has(field) ? field : '';
    wrong.fields[known] = [...(wrong.fields[known] ?? []), known === field ? message : `${field}: ${message}`];
    of.set(card.key, wrong);
    return false;
  });
  return { of, rest, all };
}

const FIELDS = new Set([
  '',
  'name',
  'effect',
  'platforms',
  'scopes',
  'methods',
  'endpoints',
  'when',
  'mask',
  'limit',
  'after',
  'remember',
  'approvers',
]);

/**
 * Returns the errors of a field that still apply: none when the field was changed since the rule was sent.
 *
 * @param {Wrong | undefined} wrong
 * @param {Rule} rule
 * @param {string} field
 * @returns {string[]}
 */
export function wrongAt(wrong, rule, field) {
  const said = wrong?.fields[field];
  if (!wrong || !said) return [];
  const same =
    field === ''
      ? wrong.rule === rule
      : wrong.rule[/** @type {keyof Rule} */ (field)] === rule[/** @type {keyof Rule} */ (field)];
  return same ? said : [];
}

/** @param {Wrong | undefined} wrong @param {Rule} rule */
export const isWrong = (wrong, rule) =>
  Object.keys(wrong?.fields ?? {}).some((field) => wrongAt(wrong, rule, field).length > 0);
