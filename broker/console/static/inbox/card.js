// The card of one inbox entry, closed or open. Closed and decided cards all have the same height.
/** @typedef {import('/console/html.js').Children} Children */
/** @typedef {import('/console/inbox/entries.js').Entry} Entry */
/** @typedef {import('/console/inbox/entry-text.js').Outcome} Ended */
import { html, useEffect, useRef } from '/console/html.js';
import { askedScope, describeLack, heldBy } from '/console/inbox/entry-text.js';
import { Pick } from '/console/inbox/pick.js';
import { forWhom } from '/console/request-view/person.js';
import { Sentence } from '/console/request-view/sentence.js';
import { Ago, Left } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

/** Returns the id of the button that opens an entry: it has the focus while a person moves through the list. */
export const openerOf = (/** @type {string} */ key) => `open-${key}`;

/**
 * `open`: whether the card is open; `toggle()` opens or closes it. `picking`: how it is selected; undefined when it cannot be. `children`: the
 * content of the open card.
 *
 * @param {{
 *   entry: Entry, open: boolean, toggle: () => void, picking?: Parameters<typeof Pick>[0] | undefined, children: Children,
 * }} props
 */
export function Card({ entry, open, toggle, picking, children }) {
  const { key, outcome, gone, deadline } = entry;
  const waits = !outcome && !gone;
  const card = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    // Scrolls when the content would open below the window. A card above may have closed at the same time, which moves this one.
    const shown = card.current;
    if (!open || !shown) return;
    if (shown.getBoundingClientRect().top > innerHeight / 3) shown.scrollIntoView();
    else shown.querySelector('.card-head')?.scrollIntoView({ block: 'nearest' });
  }, [open]);
  return html`
    <li class="card sheet" ref=${card} data-entry=${key} data-state=${waits ? 'waiting' : 'over'}>
      <div class="card-head">
        ${picking && html`<${Pick} ...${picking} />`}
        <h2>
          <button type="button" class="plain opener" id=${openerOf(key)} aria-expanded=${open} onClick=${toggle}>
            <${Chevron} /><span class="ask"><${Ask} entry=${entry} /></span>
          </button>
        </h2>
        ${waits && html`<${Left} deadline=${deadline} />`}
        <p class="about small quiet">${waits ? html`<${About} entry=${entry} />` : html`<${Outcome} outcome=${outcome} />`}</p>
      </div>
      ${open && html`<div class="card-body">${children}</div>`}
    </li>
  `;
}

export const Chevron = () => html`
  <svg class="chevron" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
    <path d="m6 3.5 4.5 4.5L6 12.5" fill="none" stroke="currentColor" stroke-width="1.75" stroke-linecap="round" stroke-linejoin="round" />
  </svg>
`;

/** @param {{ entry: Entry }} props */
function Ask({ entry: { kind, item } }) {
  if (kind === 'registration')
    return html`<strong class="theirs">${visibleLine(item.agent_name)}</strong> asks to become an agent`;
  const { name, parent } = item.agent;
  const who = html`<strong class="theirs">${visibleLine(name)}</strong>${parent && html` <span class="quiet">(a child of <span class="theirs">${visibleLine(parent.name)}</span>)</span>`}`;
  const platform = html`<strong class="theirs">${visibleLine(item.platform_name)}</strong>`;
  if (kind === 'access')
    return item.scope === null
      ? html`${who} asks for access to ${platform}`
      : html`${who} asks for${' '}
    <code class="theirs">${askedScope(item)}</code> on ${platform}`;
  return html`${who} wants to${' '}<${Sentence} sentence=${item.sentence} />`;
}

/** @param {Entry} entry */
function describeSubject({ kind, item }) {
  if (kind === 'approval')
    return [`Held by ${heldBy(item.held_because)}`, forWhom(item.caller)].filter(Boolean).join(' · ');
  return kind === 'access' ? describeLack(item.reason_code) : 'Nobody checked it';
}

/**
 * The note on an entry whose agent or platform is suspended: an approved call is then refused.
 *
 * @param {{ item: { agent: { status: string, suspended?: boolean }, platform_suspended?: boolean } }} props
 */
export function Stopped({ item: { agent, platform_suspended: isOff } }) {
  const what = (agent.suspended ?? agent.status === 'suspended') ? 'Agent' : isOff ? 'Platform' : undefined;
  return what ? html`<span class="stopped">${what} suspended</span><span aria-hidden="true"> · </span>` : null;
}

/** @param {{ entry: Entry }} props */
function About({ entry }) {
  const { kind, item } = entry;
  return html`${kind !== 'registration' && html`<${Stopped} item=${item} />`}${kind === 'approval' && html`On <strong class="theirs">${visibleLine(item.platform_name)}</strong><span aria-hidden="true"> · </span>`}${describeSubject(entry)}
    <span aria-hidden="true"> · </span><${Ago} at=${entry.item.created_at} />`;
}

/** @param {{ outcome: Ended | undefined }} props */
const Outcome = ({ outcome }) =>
  html`<span class="entry-outcome" data-kind=${outcome?.kind ?? ''}>${outcome?.words ?? 'It no longer waits…'}</span>`;
