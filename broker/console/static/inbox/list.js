// The list of cards and groups, as far as they are drawn.
/** @typedef {import('/console/html.js').Children} Children */
/** @typedef {import('/console/inbox/entries.js').CallEntry} CallEntry */
/** @typedef {import('/console/inbox/entries.js').Entry} Entry */
/** @typedef {import('/console/inbox/rows.js').Row} Row */
import { html } from '/console/html.js';
import { Card } from '/console/inbox/card.js';
import { isWaiting } from '/console/inbox/entries.js';
import { oneLine } from '/console/inbox/entry-text.js';
import { Group } from '/console/inbox/group.js';
import { DRAWN } from '/console/inbox/rows.js';
import { Boundary } from '/console/shell/boundary.js';

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
