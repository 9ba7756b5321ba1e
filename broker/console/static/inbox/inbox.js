// The inbox: what waits for a person, who looks at it and decides, by pointer or by keys.
/** @typedef {import('../../answers.ts').Me} Me */
/** @typedef {import('/console/inbox/entries.js').Act} Act */
/** @typedef {import('/console/inbox/entries.js').CallEntry} CallEntry */
/** @typedef {import('/console/inbox/entries.js').Entry} Entry */
/** @typedef {import('/console/inbox/use-inbox.js').InboxState} InboxState */
import { asError, ask } from '/console/api.js';
import { html, useEffect, useRef, useState } from '/console/html.js';
import { Access } from '/console/inbox/access.js';
import { Approval } from '/console/inbox/approval.js';
import { Card, openerOf } from '/console/inbox/card.js';
import { Confirm } from '/console/inbox/confirm.js';
import { denyAllOf } from '/console/inbox/decide.js';
import { Deny } from '/console/inbox/deny.js';
import { isWaiting } from '/console/inbox/entries.js';
import { Help } from '/console/inbox/help.js';
import { NothingWaits } from '/console/inbox/nothing-waits.js';
import { PeopleWait, usePeopleWaiting } from '/console/inbox/people-wait.js';
import { Registration } from '/console/inbox/registration.js';
import { Reject } from '/console/inbox/reject.js';
import { useDeciding } from '/console/inbox/use-deciding.js';
import { withoutPasskeys } from '/console/passkeys/ceremony.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Failed, Loading } from '/console/shell/empty.js';
import { useKeys } from '/console/shell/keys.js';
import { mayDecide, useOwner } from '/console/shell/owner.js';

/**
 * `inbox`: as useInbox answers it.
 *
 * @param {{ inbox: InboxState }} props
 */
export function Inbox({ inbox }) {
  const { entries, error, reload, settle, tidy } = inbox;
  const owner = useOwner();
  const announce = useAnnounce();
  const [openKey, setOpenKey] = useState(/** @type {string | undefined} */ (undefined));
  const [asking, setAsking] = useState(/** @type {'approve' | 'deny' | 'help' | undefined} */ (undefined));
  const passkeys = useHavingPasskeys(owner);
  const people = usePeopleWaiting(entries);
  const open = entries?.find(({ key }) => key === openKey);
  /** Goes on to the next, unless somebody went on already while the answer was on its way. */
  const latest = useRef({ entries, openKey });
  latest.current = { entries, openKey };
  const done = (/** @type {string} */ key) => {
    if (latest.current.openKey !== key) return;
    setOpenKey(undefined);
    focusOn(nextAfter(latest.current.entries ?? [], key));
  };
  const deciding = useDeciding({ open, settle, reload, done });
  useEffect(() => tidy, []);

  const toggle = (/** @type {string} */ key) => setOpenKey((before) => (before === key ? undefined : key));
  const move = (/** @type {1 | -1} */ by) => {
    const keys = (entries ?? []).filter((entry) => isWaiting(entry) || entry === open).map(({ key }) => key);
    const at = keys.indexOf(keyAtFocus() ?? openKey ?? '');
    const to = at < 0 ? (by > 0 ? 0 : keys.length - 1) : Math.min(keys.length - 1, Math.max(0, at + by));
    focusOn(keys[to]);
  };
  /** By key: only what is open and was seen whole, and never in one step. */
  const askFor = (/** @type {'approve' | 'deny'} */ what) => {
    const key = openKey ?? keyAtFocus();
    if (!key || !mayDecide(owner)) return;
    if (key !== openKey) {
      setOpenKey(key);
      announce('Look at it first, then decide.');
    } else if (open && deciding.ready(what) && isWaiting(open)) setAsking(what);
    else if (deciding.ready('deny'))
      announce('It cannot be approved yet: what is missing stands above the buttons.', 'wait');
  };
  const begin = (/** @type {Act} */ what) => (what === 'deny' ? setAsking('deny') : deciding.act(what));
  /** @type {(what: 'approve' | 'deny', note?: string) => void} */
  const finish = (what, note) => {
    setAsking(undefined);
    deciding.act(what, note);
  };
  /** By somebody who looked at one of them: an agent that floods the inbox is not read call by call. */
  const denyAll = async (/** @type {CallEntry} */ { key, item }, /** @type {string} */ note) => {
    setAsking(undefined);
    try {
      const denied = await denyAllOf(item.agent.agent_id, note);
      for (const id of denied) settle(`approval-${id}`, DENIED_ALL);
      announce(`Denied ${denied.length} calls.`, 'good');
      done(key);
    } catch (failure) {
      announce(asError(failure).message, 'bad');
    } finally {
      reload();
    }
  };
  /** `all`: the other calls of the same agent, too. */
  const deny = (/** @type {string | undefined} */ note, /** @type {boolean | undefined} */ all) =>
    all && open?.kind === 'approval' ? denyAll(open, note ?? '') : finish('deny', note);
  const close = () => setAsking(undefined);

  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    a: () => askFor('approve'),
    d: () => askFor('deny'),
    Escape: () => {
      if (openKey) focusOn(openKey);
      setOpenKey(undefined);
    },
    '?': () => setAsking('help'),
  });

  const decided = (entries ?? []).filter((entry) => !isWaiting(entry)).length;
  return html`
    <div class="page-head">
      <h1 id="inbox" tabindex="-1">Inbox</h1>
      <div class="buttons">
        ${decided > 0 && html`<button type="button" class="plain compact" id="tidy" onClick=${tidy}>Clear ${decided} decided</button>`}
        ${entries && entries.length > 0 && html`<button type="button" class="plain compact keys-hint" onClick=${() => setAsking('help')}>Keys <kbd>?</kbd></button>`}
      </div>
    </div>
    ${error && html`<div class=${entries ? 'afloat' : ''}><${Failed} error=${error} again=${reload} /></div>`}
    ${!entries && !error && html`<${Loading} />`}
    ${people > 0 && html`<${PeopleWait} count=${people} />`}
    ${entries?.length === 0 && people === 0 && html`<${NothingWaits} />`}
    ${
      entries &&
      entries.length > 0 &&
      html`<ul role="list" class="cards" id="held">
        ${entries.map(
          (entry) => html`
            <${Card} key=${entry.key} entry=${entry} open=${entry === open} toggle=${() => toggle(entry.key)}>
              <${KINDS[entry.kind]}
                entry=${entry}
                version=${deciding.version}
                waits=${isWaiting(entry)}
                busy=${deciding.busy[entry.key]}
                passkeys=${passkeys}
                shown=${deciding.shown}
                act=${begin}
              />
            <//>
          `,
        )}
      </ul>`
    }
    ${decided > 0 && decided === entries?.length && html`<p class="all-done quiet">That was all.</p>`}
    ${asking === 'help' && html`<${Help} onClose=${close} />`}
    ${asking === 'approve' && open && html`<${Confirm} entry=${open} scopes=${deciding.scopes()} onApprove=${() => finish('approve')} onClose=${close} />`}
    ${asking === 'deny' && open && html`<${REFUSALS[open.kind]} entry=${open} others=${othersOf(entries ?? [], open)} onDeny=${deny} onClose=${close} />`}
  `;
}

const DENIED_ALL = { kind: 'bad', words: 'Denied, with the other calls of this agent.' };

/**
 * How many more calls of the same agent wait.
 *
 * @param {Entry[]} entries
 * @param {Entry} entry
 */
function othersOf(entries, { key, kind, item }) {
  if (kind !== 'approval') return 0;
  return entries.filter(
    (other) =>
      other.kind === 'approval' &&
      other.key !== key &&
      isWaiting(other) &&
      other.item.agent.agent_id === item.agent.agent_id,
  ).length;
}

const KINDS = { approval: Approval, access: Access, registration: Registration };
/** What asks once more before it says no. */
const REFUSALS = { approval: Deny, access: Deny, registration: Reject };

/**
 * Whether this owner can decide by passkey here.
 *
 * @param {Me} owner
 */
function useHavingPasskeys(owner) {
  const [having, setHaving] = useState(false);
  useEffect(() => {
    if (!mayDecide(owner) || withoutPasskeys()) return;
    ask('GET', '/owner/passkeys').then(
      ({ passkeys }) => setHaving(passkeys.some(({ status }) => status === 'active')),
      () => {},
    );
  }, []);
  return having;
}

const keyAtFocus = () =>
  /** @type {HTMLElement | undefined} */ (document.activeElement?.closest('[data-entry]'))?.dataset.entry;

/**
 * The one after it that waits; the first one that does when there is none.
 *
 * @param {Entry[]} entries
 * @param {string} key
 */
function nextAfter(entries, key) {
  const at = entries.findIndex((entry) => entry.key === key);
  return [...entries.slice(at + 1), ...entries.slice(0, at)].find(isWaiting)?.key;
}

/**
 * Without a key, to the heading.
 *
 * @param {string | undefined} key
 */
function focusOn(key) {
  const target = document.getElementById(key ? openerOf(key) : 'inbox');
  target?.focus({ preventScroll: true });
  target?.closest('.card')?.scrollIntoView({ block: 'nearest' });
}
