// The dialog that decides several calls: it lists each selected call before anything is decided.
/** @typedef {import('/console/inbox/entries.js').CallEntry} CallEntry */
import { html, useEffect, useRef, useState } from '/console/html.js';
import { formatSums } from '/console/inbox/amounts.js';
import { find } from '/console/inbox/decide.js';
import { oneLine } from '/console/inbox/entry-text.js';
import { useWhole } from '/console/inbox/use-whole.js';
import { CallTitle } from '/console/request-view/call-title.js';
import { isPartly } from '/console/request-view/confirm-call.js';
import { hasToBeOpened } from '/console/request-view/has-to-be-opened.js';
import { ReasonFields, useReason } from '/console/request-view/reason.js';
import { RequestView } from '/console/request-view/request-view.js';
import { changedTexts } from '/console/request-view/text.js';
import { Dialog } from '/console/shell/dialog.js';
import { openTo } from '/console/shell/fields.js';
import { Failed, Loading } from '/console/shell/loaded.js';
import { mayDecide, useOwner } from '/console/shell/owner.js';
import { visibleLine } from '/console/visible.js';

const calls = (/** @type {number} */ count) => (count === 1 ? '1 call' : `${count} calls`);

/**
 * `entries`: as they were when the dialog opened; a request that changes later is not decided. `onDecide(note)`: the note is empty when none was
 * written. `written`: the words to begin with.
 *
 * @param {{
 *   what: 'approve' | 'deny', entries: readonly CallEntry[], written: string, onDecide: (note: string) => void, onClose: () => void,
 * }} props
 */
export function Several({ what, entries: given, written, onDecide, onClose }) {
  const [entries] = useState(given);
  const reason = useReason(written);
  const sums = formatSums(entries);
  const denies = what === 'deny';
  const { unread, closed, changed, seen } = useUnopened(entries, !denies);
  const partly = entries.filter(({ item }) => isPartly(item)).length;
  const lacking =
    unread > 0
      ? `Reading the requests: ${unread} left.`
      : closed.size > 0
        ? `${closed.size === 1 ? 'One of them has' : `${closed.size} of them have`} folded parts, or something odd: open ${closed.size === 1 ? 'it' : 'each'} and see all of it, or approve without ${closed.size === 1 ? 'it' : 'them'}.`
        : undefined;
  return html`
    <${Dialog} title=${`${denies ? 'Deny' : 'Approve'} ${calls(entries.length)}?`} onClose=${onClose} onSubmit=${() => !lacking && onDecide(denies ? reason.note : '')}>
      <ul role="list" class="several small" tabindex="0" aria-label="What is decided">
        ${entries.map((entry) => html`<${SeveralEntry} key=${entry.key} entry=${entry} closed=${closed.has(entry.key)} changed=${changed.get(entry.key) ?? []} seen=${(/** @type {boolean} */ all) => seen(entry.key, all)} />`)}
      </ul>
      ${sums && html`<p class="sums">${sums}</p>`}
      ${denies && html`<${ReasonFields} reason=${reason} whom="the agents" />`}
      <p class="quiet small">${denies ? 'None of them is ever made.' : `${whenMade(entries.length, partly)}, exactly as it was held, and at most once. You see what each does; open it to see all of its request.`}</p>
      <p class="said small" id="lacking" role="status">${lacking}</p>
      <div class="buttons">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class=${denies ? 'danger solid' : 'primary'} id=${denies ? 'deny' : 'approve'} autofocus=${!denies} aria-disabled=${Boolean(lacking)}>
          ${denies ? 'Deny' : 'Approve'} ${entries.length}
        </button>
      </div>
    <//>
  `;
}

/**
 * Returns when the calls are made. `partly`: how many of them others have to approve, too.
 *
 * @param {number} all
 * @param {number} partly
 */
function whenMade(all, partly) {
  if (partly === 0) return 'Each is made immediately';
  const others = 'once others have approved it, too';
  if (partly === all) return `Each is made ${others}`;
  return `${calls(partly)} ${partly === 1 ? 'is' : 'are'} made ${others}, and each of the others immediately`;
}

// One of several calls that are about to be decided: what it does and why, and its complete request on demand.
/**
 * `closed`: whether it still has to be opened. `changed`: what has changed since it was held, so that an approval has another effect. `seen(all)`
 * receives whether all of its request was shown.
 *
 * @param {{ entry: CallEntry, closed: boolean, changed: readonly string[], seen: (all: boolean) => void }} props
 */
function SeveralEntry({ entry, closed, changed, seen }) {
  const [open, setOpen] = useState(false);
  return html`<li data-closed=${closed}>
    <p><${CallTitle} held=${entry.item} /> ${closed && html`<span class="badge" data-kind="wait">Open it first</span>`}</p>
    ${entry.item.reason && html`<p class="theirs quiet">“${visibleLine(entry.item.reason)}”</p>`}
    ${changed.map((text) => html`<p class="odd" key=${text}>${visibleLine(text)}</p>`)}
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

// Tracks which of several calls an owner still has to open before all of them are approved: key press and Enter approve nothing
// that the card of a single call would not allow. Requests with folded or unusual content must be seen first.
/** Maximum number of concurrent reads. */
const CONCURRENCY = 6;

/**
 * Reads each request once. `wanted`: whether requests have to be seen, as before an approval. `unread`: how many are not read yet; `closed`: keys
 * of entries that have to be opened; `changed`: by key, what has changed since the call was held; `seen(key, all)` receives whether all of an opened entry was shown.
 *
 * @param {readonly CallEntry[]} entries
 * @param {boolean} wanted
 */
function useUnopened(entries, wanted) {
  const [unread, setUnread] = useState(wanted ? entries.length : 0);
  const [closed, setClosed] = useState(/** @type {ReadonlySet<string>} */ (new Set()));
  const [changed, setChanged] = useState(/** @type {ReadonlyMap<string, string[]>} */ (new Map()));
  const gone = useRef(false);
  useEffect(() => {
    if (!wanted) return;
    const left = [...entries];
    const readNext = async () => {
      for (let entry = left.shift(); entry && !gone.current; entry = left.shift()) {
        // A request that cannot be read now is read again when its entry is opened; a request that differs from the listed one is not decided.
        const held = await find(entry).catch(() => undefined);
        const { key } = entry;
        if (!held || (held.request_hash === entry.item.request_hash && hasToBeOpened(held)))
          setClosed((before) => new Set(before).add(key));
        if (held) setChanged((before) => new Map(before).set(key, changedTexts(held)));
        setUnread((before) => before - 1);
      }
    };
    for (let reader = 0; reader < CONCURRENCY; reader++) readNext();
    return () => {
      gone.current = true;
    };
  }, []);
  const seen = (/** @type {string} */ key, /** @type {boolean} */ all) =>
    all && setClosed((before) => new Set([...before].filter((other) => other !== key)));
  return { unread, closed, changed, seen };
}
