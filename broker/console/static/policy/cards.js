// The rules as cards: filter, open, change and add them.
/** @typedef {import('/console/policies/effects.js').Kind} Kind */
/** @typedef {import('/console/policies/effects.js').Rule} Rule */
/** @typedef {import('/console/policy/draft.js').Card} Card */
/** @typedef {import('/console/policy/draft.js').Draft} Draft */
/** @typedef {import('/console/policy/known.js').Known} Known */
/** @typedef {import('/console/policy/problems.js').Problems} Problems */
import { html, useLayoutEffect, useRef, useState } from '/console/html.js';
import { effectOf, nameOf } from '/console/policies/effects.js';
import { cardsOf } from '/console/policy/draft.js';
import { isWrong } from '/console/policy/problems.js';
import { RuleCard } from '/console/policy/rule-card.js';
import { valueTo } from '/console/shell/fields.js';

/** Number of cards drawn first, and added for each press of the button. */
const DRAWN = 50;
const SOUGHT_FROM = 8;
const MAX = 500;

/** @param {{ kind: Kind, cards: readonly Card[], known: Known, problems: Problems, change: (to: (before: Draft) => Partial<Draft>) => void }} props */
export function Cards({ kind, cards, known, problems, change }) {
  const [open, setOpen] = useState(/** @type {ReadonlySet<number>} */ (new Set()));
  const [words, setWords] = useState('');
  const [drawn, setDrawn] = useState(DRAWN);
  const set = (/** @type {(before: Card[]) => Card[]} */ to) => change((before) => ({ cards: to(before.cards) }));
  const show = (/** @type {number} */ key, /** @type {boolean} */ is) =>
    setOpen((before) => new Set(is ? [...before, key] : [...before].filter((one) => one !== key)));
  // Scrolls the first error into view in the same render that shows it: a later scroll would move the target of a click.
  const unseen = useRef(false);
  useLayoutEffect(() => {
    if (problems.of.size === 0) return;
    unseen.current = true;
    setOpen((before) => new Set([...before, ...problems.of.keys()]));
  }, [problems.of]);
  useLayoutEffect(() => {
    const first = unseen.current && document.querySelector('.rule-card [aria-invalid], .rule-card .wrong');
    if (!first) return;
    unseen.current = false;
    first.scrollIntoView({ block: 'center' });
  });
  // Moves the focus in the render that shows the change, since a key pressed right after it must reach the element.
  const next = useRef(/** @type {string | undefined} */ (undefined));
  useLayoutEffect(() => {
    if (next.current === undefined) return;
    /** @type {HTMLElement | null} */ (document.querySelector(next.current))?.focus();
    next.current = undefined;
  });
  const focus = (/** @type {string} */ selector) => {
    next.current = selector;
  };
  const add = (/** @type {Rule} */ rule) => {
    const [card] = cardsOf([rule]);
    if (!card) return;
    set((before) => [...before, card]);
    show(card.key, true);
    setWords('');
    focus(`#rule-${card.key}-name`);
  };
  const remove = (/** @type {number} */ key) => {
    set((before) => before.filter((one) => one.key !== key));
    focus('#add-rule');
  };
  const search = words.trim().toLowerCase();
  const entries = cards.map((card, at) => ({ card, at }));
  const fitting = entries.filter(({ card, at }) => search === '' || textOf(card.rule, at).includes(search));
  const isShown = (/** @type {Card} */ { key, rule }) => open.has(key) || isWrong(problems.of.get(key), rule);
  const shown = fitting.filter(({ card }, index) => index < drawn || isShown(card));
  return html`
    <h2 class="unseen">Rules</h2>
    ${
      cards.length >= SOUGHT_FROM &&
      html`<div class="filter" role="search">
        <label class="unseen" for="rules-search">Search the rules</label>
        <input id="rules-search" type="search" placeholder="Name, scope, endpoint, condition…" value=${words} onInput=${valueTo(setWords)} />
        <p class="small quiet" role="status">${search === '' ? `${cards.length} rules` : `${fitting.length} of ${cards.length}`}</p>
      </div>`
    }
    ${cards.length === 0 && html`<p class="sheet none">${kind === 'policy' ? 'No rules: every call is refused until one allows it.' : 'No guardrails: only the policies decide.'}</p>`}
    <ul role="list" class="rule-cards" id="cards">
      ${shown.map(
        ({
          card,
          at,
        }) => html`<${RuleCard} key=${card.key} card=${card} at=${at} kind=${kind} known=${known} open=${open.has(card.key)} wrong=${problems.of.get(card.key)}
          toggle=${() => show(card.key, !open.has(card.key))}
          change=${(/** @type {Rule} */ rule) => set((before) => before.map((one) => (one.key === card.key ? { ...one, rule } : one)))}
          remove=${() => remove(card.key)}
          copy=${() => add(copyOf(card.rule))} />`,
      )}
    </ul>
    ${fitting.length > drawn && html`<p class="more"><button type="button" id="more-cards" onClick=${() => setDrawn(drawn + DRAWN)}>Show more (${fitting.length - drawn} not shown)</button></p>`}
    ${
      cards.length < MAX
        ? html`<div class="buttons"><button type="button" id="add-rule" onClick=${() => add({ effect: 'require_approval' })}>Add a ${kind === 'policy' ? 'rule' : 'guardrail'}</button></div>`
        : html`<p class="small quiet">There are ${MAX} rules, which is the maximum. Take one out, or let one match more.</p>`
    }
  `;
}

/** @param {Rule} rule @param {number} at */
const textOf = (rule, at) => `${nameOf(rule, at)} ${effectOf(rule.effect).words} ${JSON.stringify(rule)}`.toLowerCase();

/** Copies a rule under another name, since names are unique. @param {Rule} rule @returns {Rule} */
const copyOf = ({ name, ...rule }) => ({ ...(name !== undefined && { name: `${name.slice(0, 58)} copy` }), ...rule });
