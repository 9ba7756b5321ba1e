// Decides the selected calls, and reports the result of each.
/** @typedef {import('../../answers.ts').SettledCall} SettledCall */
/** @typedef {import('/console/inbox/entries.js').CallEntry} CallEntry */
/** @typedef {import('/console/inbox/entry-text.js').Outcome} Outcome */
import { asError, ask } from '/console/api.js';
import { useRef, useState } from '/console/html.js';
import { itemOutcome } from '/console/inbox/entry-text.js';
import { useAnnounce } from '/console/shell/announce.js';
import { visibleLine } from '/console/visible.js';

/** @typedef {{ what: 'approve' | 'deny', entries: readonly CallEntry[] }} Asked */

/**
 * `settle(key, outcome)`, `reload()`: from useInbox. `done()` is called when all results are reported.
 *
 * @param {{ settle: (key: string, outcome: Outcome) => void, reload: () => void, done: () => void }} props
 */
export function useSeveral({ settle, reload, done }) {
  const announce = useAnnounce();
  const [asked, setAsked] = useState(/** @type {Asked | undefined} */ (undefined));
  const [busy, setBusy] = useState(/** @type {string | undefined} */ (undefined));
  /** The note of a decision that failed: the next confirmation begins with it. */
  const unsent = useRef('');
  /** Keys being decided here now: updates about them are ignored. */
  const ours = useRef(/** @type {ReadonlySet<string>} */ (new Set()));

  const run = async (/** @type {string} */ note) => {
    if (!asked || busy) return;
    const { what, entries } = asked;
    setAsked(undefined);
    unsent.current = note;
    ours.current = new Set(entries.map(({ key }) => key));
    setBusy(`${what === 'approve' ? 'Approving' : 'Denying'} ${entries.length}…`);
    /** @type {SettledCall[]} */
    const heard = [];
    try {
      await decideSeveral(what, entries.map(itemOf), note, (results) => {
        heard.push(...results);
        for (const result of results) {
          const outcome = settledOutcome(result);
          if (outcome) settle(`approval-${result.approval_id}`, outcome);
        }
      });
      const { kind, words } = summaryOf(heard);
      announce(words, kind);
      if (!heard.some(({ outcome }) => outcome === 'not_decided')) unsent.current = '';
    } catch (failure) {
      const before = heard.length > 0 ? `${summaryOf(heard).words} Then: ` : '';
      announce(`${before}${asError(failure).message}`, 'bad');
    } finally {
      setBusy(undefined);
      reload();
      done();
    }
  };
  return {
    asked,
    ask: (/** @type {Asked} */ wanted) => wanted.entries.length > 0 && !busy && setAsked(wanted),
    cancel: () => setAsked(undefined),
    run,
    unsent: () => unsent.current,
    busy,
    isOurs: (/** @type {string} */ key) => ours.current.has(key),
  };
}

// Decides several held calls: each is confirmed by the hash of the request that was shown, and each result is reported.
/** The maximum number of calls that the broker decides in one request. */
const BATCH_SIZE = 100;

/** @typedef {{ approval_id: string, request_hash: string }} Item */

const itemOf = (/** @type {CallEntry} */ { id, item }) => ({ approval_id: id, request_hash: item.request_hash });

/**
 * Decides exactly these requests, in batches; `heard` receives the results of each batch as they arrive. Throws the error that stops the rest:
 * batches reported before it are decided.
 *
 * @param {'approve' | 'deny'} decision
 * @param {readonly Item[]} items
 * @param {string} note empty: none
 * @param {(results: SettledCall[]) => void} heard
 */
async function decideSeveral(decision, items, note, heard) {
  for (let at = 0; at < items.length; at += BATCH_SIZE) {
    const body = { decision, items: items.slice(at, at + BATCH_SIZE), ...(note && { note }) };
    const { results } = await ask('POST', '/owner/approvals/decide', body);
    heard(results);
  }
}

const SETTLED = new Set(['approved', 'denied', 'already_decided', 'approval_expired', 'not_found']);

/**
 * Returns the outcome of one call; undefined when it still waits.
 *
 * @param {SettledCall} result
 * @returns {Outcome | undefined}
 */
function settledOutcome({ outcome, approval, decided_by_email }) {
  if (!SETTLED.has(outcome)) return undefined;
  return itemOutcome('approval', { ...approval, decided_by_email });
}

const MEANT = new Set(['approved', 'denied', 'approved_in_part']);

/** @type {Record<SettledCall['outcome'], string>} */
const OUTCOME_TEXTS = {
  approved: 'approved',
  denied: 'denied',
  approved_in_part: 'approved by you, and waiting until others approve, too',
  already_decided: 'decided already by somebody else',
  request_changed: 'no longer the request that you were shown: look again',
  approval_expired: 'expired',
  not_found: 'no longer there',
  not_decided: 'not decided, because the calls before took too long: decide again',
};

/**
 * Returns the outcome of all calls in a sentence; `good` only if each was decided as intended, and the platform accepted each call that was made.
 *
 * @param {readonly SettledCall[]} results
 * @returns {Outcome}
 */
function summaryOf(results) {
  /** @type {Map<SettledCall['outcome'], number>} */
  const counts = new Map();
  for (const { outcome } of results) counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  const sentences = [...counts].map(([outcome, count]) => `${count} ${OUTCOME_TEXTS[outcome]}`);
  const approved = results.filter(({ outcome }) => outcome === 'approved').map((one) => settledOutcome(one));
  const underWay = approved.filter((one) => one?.underWay).length;
  const failed = approved.filter((one) => one?.kind !== 'good' && !one?.underWay).length;
  if (underWay > 0) sentences.push(`${underWay} of them under way`);
  if (failed > 0) sentences.push(`${failed} of them made without success, or not made`);
  const isMeant = [...counts.keys()].every((outcome) => MEANT.has(outcome));
  return { kind: isMeant && failed === 0 ? 'good' : 'wait', words: `${visibleLine(sentences.join('; '))}.` };
}
