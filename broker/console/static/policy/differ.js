// Compares two lists of rules. Order is ignored, since it has no effect.
/** @typedef {import('/console/policies/effects.js').Rule} Rule */
/** An added, removed or changed rule (of the same name): `before` or `after` is undefined when the rule was added or removed. @typedef {{ before: Rule | undefined, after: Rule | undefined }} Difference */

const sorted = (/** @type {unknown} */ value) =>
  JSON.stringify(value, (_key, inner) =>
    inner && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );

/** Whether two lists hold the same rules in the same order. @param {unknown} a @param {unknown} b */
export const isSame = (a, b) => sorted(a) === sorted(b);

/** Returns the rules of `some` that are not in `others`, counting equal rules (multiset difference). @param {readonly Rule[]} some @param {readonly Rule[]} others */
function without(some, others) {
  /** @type {Map<string, number>} */
  const left = new Map();
  for (const rule of others) left.set(sorted(rule), (left.get(sorted(rule)) ?? 0) + 1);
  return some.filter((rule) => {
    const count = left.get(sorted(rule)) ?? 0;
    if (count > 0) left.set(sorted(rule), count - 1);
    return count === 0;
  });
}

/**
 * @param {readonly Rule[]} before
 * @param {readonly Rule[]} after
 * @returns {Difference[]}
 */
export function differences(before, after) {
  const gone = without(before, after);
  const come = without(after, before);
  const former = (/** @type {Rule} */ { name }) =>
    name === undefined ? undefined : gone.find((one) => one.name === name);
  const named = new Set(come.map(former));
  return [
    ...gone.filter((rule) => !named.has(rule)).map((rule) => ({ before: rule, after: undefined })),
    ...come.map((rule) => ({ before: former(rule), after: rule })),
  ];
}

/**
 * Three-way merge: applies the changes from `base` to `mine` to `theirs`. A rule that both changed appears twice.
 *
 * @param {readonly Rule[]} base
 * @param {readonly Rule[]} mine
 * @param {readonly Rule[]} theirs
 */
export function merged(base, mine, theirs) {
  const kept = without(theirs, without(base, mine));
  return [...kept, ...without(without(mine, base), kept)];
}
