// The terms of a grant as a form, their conversion for the owner API, and the meaning of a change in words.
/** @typedef {import('../../answers.ts').OwnedGrant} OwnedGrant */
/** @typedef {import('../../answers.ts').WholePlatform} WholePlatform */
import { visibleLine } from '../visible.js';

const DAY_S = 24 * 3600;

/** Durations, the safe choice first and "no expiry" last. @type {readonly [value: string, words: string][]} */
export const DURATIONS = [
  [String(30 * DAY_S), '30 days'],
  [String(7 * DAY_S), '7 days'],
  [String(DAY_S), '1 day'],
  [String(3600), '1 hour'],
  [String(90 * DAY_S), '90 days'],
  ['', 'No expiry'],
];
/** Keeps the expiry of an existing grant. */
export const SAME = 'same';

/** Each list is a text with one entry per line; empty: no limit. */
const LISTS = /** @type {const} */ (['repos', 'refs', 'recipients']);
/** @typedef {(typeof LISTS)[number]} ListName */
/** @typedef {{ scopes: readonly string[], lasts: string, approval: boolean } & Record<ListName, string>} Terms */

/** Returns the terms of the grant, or of a new grant. @param {OwnedGrant | undefined} grant @returns {Terms} */
export const termsOf = (grant) => ({
  scopes: grant?.scopes ?? [],
  lasts: grant && !grant.expired ? SAME : (DURATIONS[0]?.[0] ?? ''),
  approval: grant?.require_approval ?? false,
  repos: linesOf(grant?.repos),
  refs: linesOf(grant?.refs),
  recipients: linesOf(grant?.recipients),
});

const linesOf = (/** @type {readonly string[] | null | undefined} */ list) => (list ?? []).join('\n');

/** Returns the entries of a list. */
const entriesOf = (/** @type {string} */ text) =>
  text
    .split(/[\s,]+/)
    .map((one) => one.trim())
    .filter((one) => one !== '');

const isSame = (/** @type {readonly string[]} */ a, /** @type {readonly string[]} */ b) =>
  JSON.stringify([...a].sort()) === JSON.stringify([...b].sort());

/**
 * Returns the body for the owner API, with only those lists that changed.
 *
 * @param {OwnedGrant | undefined} grant
 * @param {Terms} terms
 */
export function bodyOf(grant, terms) {
  const lists = LISTS.filter((name) => terms[name] !== termsOf(grant)[name]).map((name) => {
    const entries = entriesOf(terms[name]);
    return [name, entries.length > 0 ? entries : null];
  });
  return {
    scopes: [...terms.scopes],
    require_approval: terms.approval,
    ...(terms.lasts !== SAME && { expires_in_seconds: terms.lasts === '' ? null : Number(terms.lasts) }),
    ...Object.fromEntries(lists),
  };
}

/** @type {Record<ListName, string>} */
const NAMED = { repos: 'repositories', refs: 'branches and tags that it may write', recipients: 'recipients' };

/**
 * Returns the changes that saving would make, one sentence each; empty when nothing would change.
 *
 * @param {OwnedGrant | undefined} grant
 * @param {Terms} terms
 */
export function describeChanges(grant, terms) {
  const before = termsOf(grant);
  const added = terms.scopes.filter((one) => !before.scopes.includes(one));
  const gone = before.scopes.filter((one) => !terms.scopes.includes(one));
  const lasts = DURATIONS.find(([value]) => value === terms.lasts)?.[1];
  return [
    added.length > 0 && `It gains ${said(added)}.`,
    gone.length > 0 && `It loses ${said(gone)}.`,
    grant?.expired && terms.lasts !== SAME && 'The expired grant is in force again.',
    terms.lasts !== SAME &&
      terms.scopes.length > 0 &&
      (terms.lasts === '' ? 'It does not expire.' : `It ends in ${lasts}.`),
    terms.approval !== before.approval &&
      (terms.approval
        ? 'Every call with it waits for an approval.'
        : grant && 'Its calls wait only if a rule requires it.'),
    ...LISTS.map((name) => {
      const [now, then] = [entriesOf(terms[name]), entriesOf(before[name])];
      if (isSame(now, then)) return false;
      return now.length > 0
        ? `Of ${NAMED[name]} only ${said(now)}.`
        : `It is no longer limited to certain ${NAMED[name]}.`;
    }),
  ].filter((words) => typeof words === 'string');
}

const said = (/** @type {readonly string[]} */ some) => {
  const shown = some.slice(0, 8).map(visibleLine).join(', ');
  return some.length > 8 ? `${shown} and ${some.length - 8} more` : shown;
};

/** Returns the limits that apply on a platform. @param {WholePlatform} platform @returns {ListName[]} */
export function listsOn({ builtin, manifest }) {
  const recipients = /** @type {object | undefined} */ (manifest.recipients);
  const hasRepos = builtin === 'github' || manifest.refs !== undefined || manifest.git_base_url !== undefined;
  return [
    ...(hasRepos ? /** @type {const} */ (['repos', 'refs']) : []),
    ...(Object.keys(recipients ?? {}).length > 0 ? /** @type {const} */ (['recipients']) : []),
  ];
}
