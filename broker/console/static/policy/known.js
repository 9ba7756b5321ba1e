// Platforms with their scopes and endpoints, as suggestions for the rule fields.
/** @typedef {import('../../answers.ts').Answer<'GET', '/owner/platforms/x'>} WholePlatform */
/** @typedef {{ value: string, words: string }} Option */
/** `scopes`: with the operations that each scope allows. @typedef {{ id: string, name: string, scopes: { scope: string, rules: string[] }[] }[]} Known */
import { ask } from '/console/api.js';
import { useEffect, useState } from '/console/html.js';

const OPERATION = /^(GET|POST|PUT|PATCH|DELETE) (\/\S*)/;
const MAX_WORDS = 3;

/** Reads the platforms once; while they are missing, the fields work without suggestions. @returns {Known} */
export function useKnown() {
  const [known, setKnown] = useState(/** @type {Known} */ ([]));
  useEffect(() => {
    (async () => {
      const { platforms } = await ask('GET', '/owner/platforms');
      const whole = await Promise.all(
        platforms.map(({ platform_id }) =>
          ask('GET', /** @type {'/owner/platforms/x'} */ (`/owner/platforms/${encodeURIComponent(platform_id)}`)),
        ),
      );
      setKnown(whole.map(({ platform_id: id, name, scopes }) => ({ id, name, scopes })));
    })().catch(() => {});
  }, []);
  return known;
}

/** @param {string} pattern @param {string} text */
const matches = (pattern, text) =>
  pattern === '*' ||
  new RegExp(
    `^${pattern
      .split('*')
      .map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
      .join('.*')}$`,
  ).test(text);

/** Whether one of the patterns matches; without patterns, every text matches. @param {readonly string[] | undefined} patterns @param {string} text */
const anyMatches = (patterns, text) => patterns === undefined || patterns.some((pattern) => matches(pattern, text));

/** @param {Known} known @returns {Option[]} */
export const platformOptions = (known) => known.map(({ id, name }) => ({ value: id, words: name === id ? '' : name }));

/** Returns the scopes of the rule's platforms, with what each allows, and patterns for several scopes. @param {Known} known @param {{ platforms?: string[] }} rule @returns {Option[]} */
export function scopeOptions(known, { platforms }) {
  const scopes = known.filter(({ id }) => anyMatches(platforms, id)).flatMap(({ scopes: some }) => some);
  const one = scopes.map(({ scope, rules }) => ({ value: scope, words: describeRules(rules) }));
  const ends = new Set(scopes.map(({ scope }) => /[.:][^.:]+$/.exec(scope)?.[0] ?? ''));
  const patterns = [...ends].filter(
    (end) => end !== '' && scopes.filter(({ scope }) => scope.endsWith(end)).length > 1,
  );
  return [...one, ...patterns.map((end) => ({ value: `*${end}`, words: `every scope that ends in ${end}` }))];
}

/** @param {readonly string[]} rules */
const describeRules = (rules) =>
  rules.slice(0, MAX_WORDS).join(', ') + (rules.length > MAX_WORDS ? ` and ${rules.length - MAX_WORDS} more` : '');

/** Returns the endpoints of the rule's scopes and methods. @param {Known} known @param {{ platforms?: string[], scopes?: string[], methods?: string[] }} rule @returns {Option[]} */
export function endpointOptions(known, { platforms, scopes, methods }) {
  /** @type {Map<string, Set<string>>} */
  const found = new Map();
  for (const { id, scopes: some } of known)
    for (const { scope, rules } of some)
      if (anyMatches(platforms, id) && anyMatches(scopes, scope))
        for (const rule of rules) {
          const [, method = '', path = ''] = OPERATION.exec(rule) ?? [];
          if (path === '' || (methods && !methods.includes(method))) continue;
          found.set(path, (found.get(path) ?? new Set()).add(method));
        }
  return [...found]
    .map(([value, with_]) => ({ value, words: [...with_].join(', ') }))
    .sort((a, b) => (a.value < b.value ? -1 : 1));
}

/** Returns the operations of a scope that consist of a method and a path. @param {readonly string[]} rules */
export const operationsOf = (rules) =>
  rules.flatMap((rule) => {
    const [, method, path] = OPERATION.exec(rule) ?? [];
    return method && path ? [{ method, path }] : [];
  });
