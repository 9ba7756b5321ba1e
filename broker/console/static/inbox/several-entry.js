// One of several calls that are about to be decided: what it does and why, and its complete request on demand.
/** @typedef {import('/console/inbox/entries.js').CallEntry} CallEntry */
import { html, useState } from '/console/html.js';
import { oneLine } from '/console/inbox/entry-text.js';
import { useWhole } from '/console/inbox/use-whole.js';
import { CallTitle } from '/console/request-view/call-title.js';
import { RequestView } from '/console/request-view/request-view.js';
import { Failed, Loading } from '/console/shell/empty.js';
import { openTo } from '/console/shell/fields.js';
import { mayDecide, useOwner } from '/console/shell/owner.js';
import { visibleLine } from '/console/visible.js';

/**
 * `closed`: whether it still has to be opened. `seen(all)` receives whether all of its request was shown.
 *
 * @param {{ entry: CallEntry, closed: boolean, seen: (all: boolean) => void }} props
 */
export function SeveralEntry({ entry, closed, seen }) {
  const [open, setOpen] = useState(false);
  return html`<li data-closed=${closed}>
    <p><${CallTitle} held=${entry.item} /> ${closed && html`<span class="badge" data-kind="wait">Open it first</span>`}</p>
    ${entry.item.reason && html`<p class="theirs quiet">“${visibleLine(entry.item.reason)}”</p>`}
    <details onToggle=${openTo(setOpen)}>
      <summary>The whole request<span class="unseen">: ${oneLine(entry)}</span></summary>
      ${open && html`<${Whole} entry=${entry} seen=${seen} />`}
    </details>
  </li>`;
}

/** @param {{ entry: CallEntry, seen: (all: boolean) => void }} props */
function Whole({ entry, seen }) {
  const owner = useOwner();
  const { whole: held, error, load } = useWhole(entry, 0);
  if (error) return html`<${Failed} error=${error} again=${load} />`;
  if (!held) return html`<${Loading} />`;
  // The decision is for the listed request, by its hash: another request must not be shown in its place.
  if (held.request_hash !== entry.item.request_hash)
    return html`<p class="notice" data-kind="bad" role="alert">This is no longer the request that was listed. It will not be decided: close this, and look again.</p>`;
  return html`<${RequestView} held=${held} onSeen=${seen} who=${mayDecide(owner) ? owner.email : 'the person who decides'} />`;
}
