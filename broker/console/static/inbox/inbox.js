// The inbox page: entries that wait for a decision, and deciding them by pointer or keyboard.
/** @typedef {import('../../answers.ts').StandingBody} StandingBody */
/** @typedef {import('/console/inbox/entries.js').Act} Act */
/** @typedef {import('/console/inbox/entries.js').CallEntry} CallEntry */
/** @typedef {import('/console/inbox/entries.js').Entry} Entry */
/** @typedef {import('/console/inbox/rows.js').Row} Row */
/** @typedef {import('/console/inbox/use-inbox.js').InboxState} InboxState */
import { html, useEffect, useRef, useState } from '/console/html.js';
import { ConfirmDecision } from '/console/inbox/confirm-decision.js';
import { isWaiting, othersOf } from '/console/inbox/entries.js';
import { Body } from '/console/inbox/entry-body.js';
import { Filter, NAMES } from '/console/inbox/filter.js';
import { focusOn, keyAtFocus, useFocusLater } from '/console/inbox/focus.js';
import { useHavingPasskeys } from '/console/inbox/having-passkeys.js';
import { Help } from '/console/inbox/help.js';
import { List } from '/console/inbox/list.js';
import { NothingWaits } from '/console/inbox/nothing-waits.js';
import { PeopleWait, usePeopleWaiting } from '/console/inbox/people-wait.js';
import { focusables, nextAfter } from '/console/inbox/rows.js';
import { SelectionBar } from '/console/inbox/selection-bar.js';
import { Several } from '/console/inbox/several.js';
import { UpdatesWait } from '/console/inbox/updates-wait.js';
import { useDeciding } from '/console/inbox/use-deciding.js';
import { useDenyingAll } from '/console/inbox/use-denying-all.js';
import { useRows } from '/console/inbox/use-rows.js';
import { useSelection } from '/console/inbox/use-selection.js';
import { useSeveral } from '/console/inbox/use-several.js';
import { useAnnounce } from '/console/shell/announce.js';
import { filtersIn, isFiltered } from '/console/shell/filters.js';
import { useKeys } from '/console/shell/keys.js';
import { Failed, Loading } from '/console/shell/loaded.js';
import { mayChange, mayDecide, useOwner } from '/console/shell/owner.js';
import { Link } from '/console/shell/router.js';

/** The filter is shown from this number of entries on. */
const FILTERED_FROM = 6;

/**
 * `inbox`: the result of useInbox.
 *
 * @param {{ place: URL, inbox: InboxState }} props
 */
export function Inbox({ place, inbox }) {
  const { entries, error, reload, settle, tidy } = inbox;
  const owner = useOwner();
  const announce = useAnnounce();
  const [openKey, setOpenKey] = useState(/** @type {string | undefined} */ (undefined));
  const [asking, setAsking] = useState(/** @type {Exclude<Act, 'passkey'> | 'help' | undefined} */ (undefined));
  const passkeys = useHavingPasskeys(owner);
  const people = usePeopleWaiting(entries);
  const filters = filtersIn(place, NAMES);
  const { rows, shown, hidden, draw, more, arrangeAgain } = useRows(entries, filters, openKey);
  const open = entries?.find(({ key }) => key === openKey);
  const focusLater = useFocusLater();
  /** Opens the next entry, unless the owner moved on while the response was in flight. */
  const latest = useRef({ rows, openKey });
  latest.current = { rows, openKey };
  const done = (/** @type {string} */ key) => {
    if (latest.current.openKey !== key) return;
    setOpenKey(undefined);
    focusLater(nextAfter(latest.current.rows, key));
  };
  const deciding = useDeciding({ open, settle, reload, done });
  const several = useSeveral({ settle, reload, done: () => focusLater(focusables(latest.current.rows, undefined)[0]) });
  const selection = useSelection(shown, (key) => several.isOurs(key) || deciding.busy[key] !== undefined);
  const denyAll = useDenyingAll({ settle, reload, done, keep: deciding.keep });
  useEffect(() => tidy, []);

  const toggle = (/** @type {string} */ key) => setOpenKey((before) => (before === key ? undefined : key));
  const move = (/** @type {1 | -1} */ by) => {
    const keys = focusables(rows, openKey);
    const at = keys.indexOf(keyAtFocus() ?? openKey ?? '');
    const to = at < 0 ? (by > 0 ? 0 : keys.length - 1) : Math.min(keys.length - 1, Math.max(0, at + by));
    if (by > 0 && at === keys.length - 1 && hidden > 0) more();
    focusOn(keys[to]);
  };
  const select = (/** @type {boolean} */ reaches) => {
    const key = keyAtFocus() ?? openKey;
    const row = rows.find(({ slot }) => slot.id === key);
    if (!key || !mayDecide(owner)) return;
    if (row) selection.toggle(row.entries.filter(isWaiting).map((entry) => entry.key));
    else if (reaches) selection.reach(key);
    else selection.toggle([key]);
  };
  /** Decision by key press: applies to the selection; without one, to the open entry if it was seen completely, and always with a confirmation. */
  const askFor = (/** @type {'approve' | 'deny'} */ what) => {
    const key = openKey ?? keyAtFocus();
    if (!mayDecide(owner)) return;
    if (selection.selected.length > 0) several.ask({ what, entries: selection.selected });
    else if (!key) return;
    else if (rows.some(({ slot }) => slot.id === key)) announce('Open the group, or select it with x, then decide.');
    else if (key !== openKey) {
      setOpenKey(key);
      announce('Read it first, then decide.');
    } else if (open && deciding.ready(what) && isWaiting(open)) setAsking(what);
    else if (deciding.ready('deny'))
      announce('It cannot be approved yet: what is missing is shown above the buttons.', 'wait');
  };
  /** Every decision opens a confirmation, except by passkey: the device confirms it. A denial asks for its reason there. */
  const begin = (/** @type {Act} */ what) => (what === 'passkey' ? deciding.act(what) : setAsking(what));
  /** @type {(what: Act, note?: string, standing?: StandingBody) => void} */
  const finish = (what, note, standing) => {
    setAsking(undefined);
    deciding.act(what, note, standing);
  };
  /** `all`: also the other calls of the same agent, or registrations from the same network. */
  const deny = (/** @type {string | undefined} */ note, /** @type {boolean | undefined} */ all) => {
    if (!all || !open || open.kind === 'access') return finish(asking === 'deny-passkey' ? asking : 'deny', note);
    setAsking(undefined);
    denyAll(open, note ?? '');
  };
  const close = () => setAsking(undefined);
  const putAway = () => {
    tidy();
    arrangeAgain();
  };

  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    x: () => select(false),
    X: () => select(true),
    a: () => askFor('approve'),
    d: () => askFor('deny'),
    Escape: () => {
      if (!openKey) return selection.clear();
      setOpenKey(undefined);
      focusLater(openKey);
    },
    '?': () => setAsking('help'),
  });

  const decided = (entries ?? []).filter((entry) => !isWaiting(entry)).length;
  /** Once the filter was shown it stays, so that the list below does not move. */
  const filtered = useRef(false);
  filtered.current ||= isFiltered(filters) || (entries?.length ?? 0) >= FILTERED_FROM;
  return html`
    <div class="page-head">
      <h1 id="inbox" tabindex="-1">Inbox</h1>
      <div class="buttons">
        <${Link} to="/console/standing-approvals" class="small">Standing approvals<//>
        ${decided > 0 && html`<button type="button" class="plain compact" id="tidy" onClick=${putAway}>Clear ${decided} decided</button>`}
        ${entries && entries.length > 0 && html`<button type="button" class="plain compact keys-hint" onClick=${() => setAsking('help')}>Keys <kbd>?</kbd></button>`}
      </div>
    </div>
    ${error && html`<div class=${entries ? 'afloat' : ''}><${Failed} error=${error} again=${reload} /></div>`}
    ${!entries && !error && html`<${Loading} />`}
    ${people > 0 && html`<${PeopleWait} count=${people} />`}
    ${mayChange(owner) && html`<${UpdatesWait} />`}
    ${entries?.length === 0 && people === 0 && html`<${NothingWaits} reload=${reload} />`}
    ${filtered.current && html`<${Filter} entries=${entries ?? []} filters=${filters} shown=${shown.filter(isWaiting).length} />`}
    ${rows.length === 0 && isFiltered(filters) && html`<p class="quiet" id="none-fits">Nothing that waits fits this filter. <${Link} to="/console">Show all<//></p>`}
    ${
      entries &&
      entries.length > 0 &&
      html`<${List}
        rows=${rows}
        hidden=${hidden}
        more=${more}
        open=${open}
        toggle=${toggle}
        draw=${draw}
        selecting=${mayDecide(owner) ? selection : undefined}
        body=${(/** @type {Entry} */ entry) => html`<${Body} entry=${entry} deciding=${deciding} passkeys=${passkeys} act=${begin} reload=${reload} />`}
      />`
    }
    ${decided > 0 && decided === entries?.length && html`<p class="all-done quiet">That was all.</p>`}
    <${SelectionBar} count=${selection.selected.length} busy=${several.busy} ask=${(/** @type {'approve' | 'deny'} */ what) => several.ask({ what, entries: selection.selected })} clear=${selection.clear} />
    ${asking === 'help' && html`<${Help} onClose=${close} />`}
    ${
      asking &&
      asking !== 'help' &&
      open &&
      html`<${ConfirmDecision} what=${asking} entry=${open} deciding=${deciding} others=${othersOf(entries ?? [], open)} deny=${deny}
        approve=${(/** @type {string} */ note, /** @type {StandingBody | undefined} */ standing) => finish('approve', note, standing)} onClose=${close} />`
    }
    ${several.asked && html`<${Several} what=${several.asked.what} entries=${several.asked.entries} written=${several.unsent()} onDecide=${several.run} onClose=${several.cancel} />`}
  `;
}
