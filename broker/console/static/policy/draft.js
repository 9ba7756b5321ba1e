// The unsaved draft of rules, kept in this tab so that neither a reload nor signing in again loses it.
/** @typedef {import('../../answers.ts').Me} Me */
/** @typedef {import('/console/policies/effects.js').Rule} Rule */
/** @typedef {import('/console/policy/subject.js').Subject} Subject */
/** A rule with a stable key for its card. @typedef {{ key: number, rule: Rule }} Card */
/** `base`, `baseRules`: the version that the draft changes, and its rules. `text`: the text as edited, when the draft is shown as text. @typedef {{ name: string, base: number, baseRules: Rule[], cards: Card[], form: 'cards' | 'yaml' | 'json', text: string }} Draft */
import { useEffect, useRef, useState } from '/console/html.js';
import { useOwner } from '/console/shell/owner.js';

let last = 0;

/** @param {readonly Rule[]} rules @returns {Card[]} */
export const cardsOf = (rules) => rules.map((rule) => ({ key: ++last, rule }));

/** @param {Subject} subject @returns {Draft} */
const draftOf = ({ name, version, rules }) => ({
  name,
  base: version,
  baseRules: rules,
  cards: cardsOf(rules),
  form: 'cards',
  text: '',
});

const SAVE_DELAY_MS = 200;

/**
 * Returns the draft of a subject; `restored`: it was loaded from this tab's storage. `forget` deletes it, after saving or discarding.
 *
 * @param {Subject} subject
 */
export function useDraft(subject) {
  const owner = useOwner();
  const key = keyOf(owner, subject);
  const [found] = useState(() => kept(key));
  const [draft, setDraft] = useState(() => found ?? draftOf(subject));
  const [touched, setTouched] = useState(found !== undefined);
  const [restored, setRestored] = useState(found !== undefined);
  const latest = useRef({ draft, touched });
  latest.current = { draft, touched };
  const keep = () => {
    if (latest.current.touched) keepAt(key, latest.current.draft);
  };
  useEffect(() => {
    const timer = setTimeout(keep, SAVE_DELAY_MS);
    return () => clearTimeout(timer);
  }, [draft, touched]);
  useEffect(() => {
    addEventListener('pagehide', keep);
    return () => {
      removeEventListener('pagehide', keep);
      keep();
    };
  }, []);
  const change = (/** @type {Partial<Draft> | ((before: Draft) => Partial<Draft>)} */ to) => {
    setTouched(true);
    setDraft((before) => ({ ...before, ...(typeof to === 'function' ? to(before) : to) }));
  };
  const forget = () => {
    latest.current = { ...latest.current, touched: false };
    sessionStorage.removeItem(key);
  };
  const restart = () => {
    forget();
    setTouched(false);
    setRestored(false);
    setDraft(draftOf(subject));
  };
  return { draft, change, forget, restart, restored };
}

/** @param {Me} owner @param {Pick<Subject, 'id'>} subject */
const keyOf = ({ id, organisation }, subject) => `svc-rules ${organisation.id} ${id} ${subject.id}`;

/** @param {string} key @param {Draft} draft */
function keepAt(key, draft) {
  try {
    sessionStorage.setItem(key, JSON.stringify(draft));
  } catch {
    // The storage is full: the draft stays on the page only.
  }
}

/** @param {string} key @returns {Draft | undefined} */
function kept(key) {
  const text = sessionStorage.getItem(key);
  if (text === null) return undefined;
  try {
    const draft = /** @type {Draft} */ (JSON.parse(text));
    return { ...draft, cards: cardsOf(draft.cards.map(({ rule }) => rule)) };
  } catch {
    return undefined;
  }
}
