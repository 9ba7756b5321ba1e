// The list of cards and groups, as far as they are drawn.
/** @typedef {import('/console/html.js').Children} Children */
/** @typedef {import('/console/inbox/entries.js').CallEntry} CallEntry */
/** @typedef {import('/console/inbox/rows.js').Row} Row */
/** @typedef {import('/console/inbox/entries.js').Entry} Entry */
import { html } from '/console/html.js';
import { formatSums } from '/console/inbox/amounts.js';
import { Card, Chevron, openerOf, Stopped } from '/console/inbox/card.js';
import { isWaiting } from '/console/inbox/entries.js';
import { heldBy, nameWithParent, oneLine } from '/console/inbox/entry-text.js';
import { Pick } from '/console/inbox/pick.js';
import { DRAWN } from '/console/inbox/rows.js';
import { Boundary } from '/console/shell/boundary.js';
import { Ago, Left } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

/** @typedef {{ has: (key: string) => boolean, toggle: (keys: readonly string[], on?: boolean) => void, reach: (key: string) => void }} Selecting */

/**
 * `hidden`: the number of rows that are not drawn; `more()` draws more of them. `selecting`: undefined when this owner cannot decide. `body(entry)`
 * returns the content of an open card. `draw(row, opened)` opens a group, closes it, or draws more of it: `opened` is the number of cards drawn
 * then.
 *
 * @param {{
 *   rows: readonly Row[], hidden: number, more: () => void, open: Entry | undefined, toggle: (key: string) => void,
 *   draw: (row: Row, opened: number | undefined) => void, selecting: Selecting | undefined, body: (entry: Entry) => Children,
 * }} props
 */
export function List({ rows, hidden, more, open, toggle, draw, selecting, body }) {
  const card = (/** @type {Entry} */ entry) => html`
    <${Boundary} key=${entry.key} tag="li" what="This pending entry">
      <${One} entry=${entry} open=${entry === open} toggle=${() => toggle(entry.key)} selecting=${selecting} body=${body} />
    <//>
  `;
  const group = (/** @type {Row} */ row) => {
    const keys = row.entries.filter(isWaiting).map(({ key }) => key);
    const picking = selecting && {
      all: keys.length > 0 && keys.every(selecting.has),
      some: keys.some(selecting.has),
      pick: (/** @type {boolean} */ on) => selecting.toggle(keys, on),
    };
    const { open: isOpen, drawn, slot } = row;
    return html`
      <${Group}
        key=${slot.id}
        row=${row}
        picking=${picking}
        toggle=${() => draw(row, isOpen ? undefined : Math.min(DRAWN, row.entries.length))}
        more=${() => draw(row, drawn.length + DRAWN)}
      >
        ${drawn.map(card)}
      <//>
    `;
  };
  return html`
    <ul role="list" class="cards" id="held">
      ${rows.map((row) => (row.slot.grouped ? group(row) : row.drawn.map(card)))}
    </ul>
    ${hidden > 0 && html`<p class="more"><button type="button" id="show-more" onClick=${more}>Show more (${hidden} not shown)</button></p>`}
  `;
}

/**
 * A component for each entry, so that a rendering error in one entry does not affect the others.
 *
 * @param {{
 *   entry: Entry, open: boolean, toggle: () => void, selecting: Selecting | undefined, body: (entry: Entry) => Children,
 * }} props
 */
function One({ entry, open, toggle, selecting, body }) {
  const picking = selecting &&
    entry.kind === 'approval' && {
      label: `Select: ${oneLine(entry)}`,
      on: selecting.has(entry.key) && isWaiting(entry),
      disabled: !isWaiting(entry),
      pick: (/** @type {boolean} */ on, /** @type {boolean} */ reach) =>
        reach ? selecting.reach(entry.key) : selecting.toggle([entry.key], on),
    };
  return html`
    <${Card} entry=${entry} open=${open} toggle=${toggle} picking=${picking || undefined}>
      ${open && html`<${Boundary} what="What is requested">${body(entry)}<//>`}
    <//>
  `;
}

// A group of equal calls in one line: number, agent, operation, and age. Opened, it shows a card for each call.
/**
 * `picking`: how the group's calls are selected; undefined when this owner cannot decide. `more()` draws calls that arrived since the group was
 * opened, or further ones. `children`: the drawn cards.
 *
 * @param {{
 *   row: Row, picking?: { all: boolean, some: boolean, pick: (on: boolean) => void }, toggle: () => void, more: () => void,
 *   children: Children,
 * }} props
 */
function Group({ row, picking, toggle, more, children }) {
  const { slot, open, drawn } = row;
  const entries = /** @type {CallEntry[]} */ (row.entries);
  const waiting = entries.filter(isWaiting);
  const [first] = waiting.length > 0 ? waiting : entries;
  if (!first) return null;
  const { agent, platform_name, method, held_because, scope, created_at } = first.item;
  // Shown even when the number is 0, so that nothing moves when a call arrives.
  const hidden = entries.length - drawn.length;
  const lead = leadOf(first);
  const name = visibleLine(nameWithParent(agent));
  const title = `${name}: ${lead ?? method} on ${visibleLine(platform_name)}`;
  const sums = formatSums(waiting);
  return html`
    <li class="group sheet" data-slot=${slot.id} data-state=${waiting.length > 0 ? 'waiting' : 'over'}>
      <div class="card-head">
        ${picking && html`<${Pick} label=${`Select all ${waiting.length}: ${title}`} on=${picking.all} some=${picking.some} disabled=${waiting.length === 0} pick=${picking.pick} />`}
        <h2>
          <button type="button" class="plain opener" id=${openerOf(slot.id)} aria-expanded=${open} onClick=${toggle}>
            <${Chevron} /><span class="ask"><span class="badge group-count" data-kind="accent">${waiting.length} ${waiting.length === 1 ? 'call' : 'calls'}</span>${' '}
              <strong class="theirs">${name}</strong> wants to${' '}
              ${lead ? `${lead} …` : html`<code>${method}</code>`} on <strong class="theirs">${visibleLine(platform_name)}</strong></span>
          </button>
        </h2>
        ${waiting.length > 0 && html`<${Left} deadline=${Math.min(...waiting.map(({ deadline }) => deadline))} />`}
        ${sums && html`<p class="about sums small">${sums}</p>`}
        <p class="about small quiet">
          <${Stopped} item=${first.item} />
          <code class="theirs">${visibleLine(scope)}</code> · Held by ${heldBy(held_because)} · the first <${Ago} at=${created_at} />
          ${entries.length > waiting.length && ` · ${entries.length - waiting.length} decided`}
        </p>
      </div>
      ${
        open &&
        html`<ul role="list" class="cards" aria-label=${title}>${children}</ul>
          <p class="more small quiet">${hidden > 0 ? html`<button type="button" class="compact" onClick=${more}>Show ${hidden} more</button>` : 'All of them are shown.'}</p>`
      }
    </li>
  `;
}

/**
 * Returns the words of the sentence template before its first value, which all calls of the group share: `refund`, `create an issue in`.
 *
 * @param {CallEntry} entry
 */
function leadOf({ item: { sentence } }) {
  const [first] = sentence.parts;
  const words = first && 'text' in first ? first.text.trim() : '';
  return sentence.template === null || words === '' ? undefined : words;
}
