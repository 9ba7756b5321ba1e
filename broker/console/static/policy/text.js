// Converts rules to and from text, in YAML or JSON: the same rules as on the cards.
/** @typedef {import('/console/policies/effects.js').Rule} Rule */
/** @typedef {'yaml' | 'json'} Form */

/** The YAML library, loaded on first use. */
const yaml = () => import('/console/vendor/yaml/index.js');

/** @param {Form} form @param {readonly Rule[]} rules */
export async function textOf(form, rules) {
  if (form === 'json') return `${JSON.stringify(rules, null, 2)}\n`;
  return (await yaml()).stringify(rules, { lineWidth: 0 });
}

/**
 * Parses the rules of a text: a list, or a part of a governance file that begins with `rules:` or `guardrails:`. Throws Error with a message for a
 * person.
 *
 * @param {Form} form
 * @param {string} text
 * @returns {Promise<Rule[]>}
 */
export async function rulesIn(form, text) {
  if (text.trim() === '') return [];
  const value = form === 'json' ? JSON.parse(text) : (await yaml()).parse(text, { maxAliasCount: 100 });
  const list = value?.rules ?? value?.guardrails ?? value;
  if (!Array.isArray(list)) throw new Error('A list of rules belongs here: each begins with “- effect: …”.');
  list.forEach(check);
  return list;
}

const LISTS = ['platforms', 'scopes', 'methods', 'endpoints'];
const TEXTS = ['name', 'effect', 'when'];

/** Throws when cards cannot show the rule. @param {unknown} rule @param {number} at */
function check(rule, at) {
  if (typeof rule !== 'object' || rule === null || Array.isArray(rule))
    throw new Error(`rules[${at}]: names and values belong here, such as effect: allow.`);
  const members = /** @type {Record<string, unknown>} */ (rule);
  for (const name of LISTS) {
    const value = members[name];
    if (value !== undefined && !(Array.isArray(value) && value.every((one) => typeof one === 'string')))
      throw new Error(`rules[${at}].${name}: a list of texts belongs here, such as [GET].`);
  }
  for (const name of TEXTS)
    if (members[name] !== undefined && typeof members[name] !== 'string')
      throw new Error(`rules[${at}].${name}: a text belongs here; put it in quotes.`);
  if (members.effect === undefined) throw new Error(`rules[${at}].effect: is missing.`);
}
