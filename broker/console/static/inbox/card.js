// One thing that waits, closed or open. Closed ones, and those that were decided, are all of one height.
import { html, useEffect, useRef } from '/console/html.js';
import { askedScope, heldBy, lackInWords } from '/console/inbox/words.js';
import { Ago, Left } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

/** The id of the button that opens an entry: where the focus is while one moves through the list. */
export const openerOf = (key) => `open-${key}`;

/** `open`: whether it is; `toggle()` changes that. `children`: what there is to see of it when it is open. */
export function Card({ entry, open, toggle, children }) {
  const { key, became, gone, deadline } = entry;
  const waits = !became && !gone;
  const card = useRef(null);
  useEffect(() => {
    // Where there is no room left below it, its content would open out of sight.
    if (open && card.current.getBoundingClientRect().top > innerHeight / 3) card.current.scrollIntoView();
  }, [open]);
  return html`
    <li class="card sheet" ref=${card} data-entry=${key} data-state=${waits ? 'waiting' : 'over'}>
      <div class="card-head">
        <h2>
          <button type="button" class="plain opener" id=${openerOf(key)} aria-expanded=${open} onClick=${toggle}>
            <${Chevron} /><span class="ask"><${Ask} entry=${entry} /></span>
          </button>
        </h2>
        ${waits && html`<${Left} deadline=${deadline} />`}
        <p class="about small quiet">${waits ? html`<${About} entry=${entry} />` : html`<${Became} became=${became} />`}</p>
      </div>
      ${open && html`<div class="card-body">${children}</div>`}
    </li>
  `;
}

const Chevron = () => html`
  <svg class="chevron" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
    <path d="m6 3.5 4.5 4.5L6 12.5" fill="none" stroke="currentColor" stroke-width="1.75" stroke-linecap="round" stroke-linejoin="round" />
  </svg>
`;

function Ask({ entry: { kind, item } }) {
  if (kind === 'registration')
    return html`<strong class="theirs">${visibleLine(item.agent_name)}</strong> asks to become an agent`;
  const { name, parent } = item.agent;
  const who = html`<strong class="theirs">${visibleLine(name)}</strong>${parent && html` <span class="quiet">(a child of <span class="theirs">${visibleLine(parent.name)}</span>)</span>`}`;
  const platform = html`<strong class="theirs">${visibleLine(item.platform)}</strong>`;
  if (kind === 'access')
    return item.scope === null
      ? html`${who} asks for access to ${platform}`
      : html`${who} asks for${' '}
    <code class="theirs">${askedScope(item)}</code> on ${platform}`;
  return html`${who} wants to${' '}
    <code class="theirs">${visibleLine(item.method)} ${visibleLine(item.path)}</code> on ${platform}`;
}

const ABOUT = {
  approval: ({ held_because }) => `Held by ${heldBy(held_because)}`,
  access: ({ reason_code }) => lackInWords(reason_code),
  registration: () => 'Nobody checked it',
};

function About({ entry: { kind, item } }) {
  return html`${ABOUT[kind](item)}
    <span aria-hidden="true"> · </span><${Ago} at=${item.created_at} />`;
}

const Became = ({ became }) =>
  html`<span class="became" data-kind=${became?.kind ?? ''}>${became?.words ?? 'It no longer waits…'}</span>`;
