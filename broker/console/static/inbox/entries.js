// The entries of the inbox. An entry never moves while the list is shown: new entries come last, and decided entries keep
// their place until they are cleared, so that no button moves under a pointer.
/** @typedef {import('../../answers.ts').ListedAccessRequest} ListedAccessRequest */
/** @typedef {import('../../answers.ts').ListedCall} ListedCall */
/** @typedef {import('../../answers.ts').ListedRegistration} ListedRegistration */
/** @typedef {import('/console/inbox/decide.js').Word} Word */
/** @typedef {import('/console/inbox/decide.js').Wholes} Wholes */
/** @typedef {import('/console/inbox/entry-text.js').Outcome} Outcome */

/** @typedef {{ key: string, id: string, deadline: number, gone?: true, outcome?: Outcome }} Standing */
/** @typedef {Standing & { kind: 'approval', item: ListedCall }} CallEntry */
/** @typedef {Standing & { kind: 'access', item: ListedAccessRequest }} AccessEntry */
/** @typedef {Standing & { kind: 'registration', item: ListedRegistration }} RegistrationEntry */
/** @typedef {CallEntry | AccessEntry | RegistrationEntry} Entry */
/** The actions of an entry's buttons. @typedef {'approve' | 'passkey' | 'deny' | 'deny-passkey'} Act */
/** The item on the screen that a decision applies to. @typedef {{ subject: Wholes[keyof Wholes], seen: boolean, word: Word | undefined }} Shown */
/** @typedef {(now: Shown | undefined) => void} HearShown */
/**
 * Props of the view of an opened entry.
 *
 * @template {Entry} E
 * @typedef {{ entry: E, version: number, waits: boolean, busy?: Act, shown: HearShown, act: (what: Act) => void }} Opened
 */

/**
 * Returns the id of a held call, an access request or a registration, as the owner API returns it.
 *
 * @param {Entry['item']} item
 */
export function idOf(item) {
  if ('approval_id' in item) return item.approval_id;
  return 'request_id' in item ? item.request_id : item.id;
}

/**
 * Returns the entry `{ key, kind, id, item, deadline }` of an item.
 *
 * @template {Pick<Entry, 'kind' | 'item'>} One
 * @param {One} one
 */
export function entryOf(one) {
  const id = idOf(one.item);
  // Computed from the remaining whole seconds by the broker's clock: this machine's clock may be wrong.
  return { ...one, key: `${one.kind}-${id}`, id, deadline: Date.now() + (one.item.expires_in_seconds ?? 0) * 1000 };
}

/**
 * Merges the waiting entries into the list. Entries that no longer wait are marked `gone`: their outcome is not known yet.
 *
 * @param {Entry[]} entries
 * @param {Entry[]} found
 * @returns {Entry[]}
 */
export function merge(entries, found) {
  const fresh = new Map(found.map((entry) => [entry.key, entry]));
  const kept = entries.map((entry) => {
    const now = fresh.get(entry.key);
    fresh.delete(entry.key);
    if (entry.outcome) return entry;
    return /** @type {Entry} */ (now ? { ...entry, ...now } : { ...entry, gone: true });
  });
  return [...kept, ...fresh.values()];
}

/**
 * Records the outcome of an entry, in words and with a kind (good, bad or empty): it no longer waits.
 *
 * @param {Entry[]} entries
 * @param {string} key
 * @param {Outcome} outcome
 */
export const settled = (entries, key, outcome) =>
  entries.map((entry) => (entry.key === key ? { ...entry, outcome } : entry));

export const isWaiting = (/** @type {Entry} */ entry) => !entry.outcome && !entry.gone;

/**
 * Returns how many more waiting entries can be denied together with this one: calls of the same agent, registrations from the same network.
 *
 * @param {Entry[]} entries
 * @param {Entry} entry
 */
export function othersOf(entries, entry) {
  const from = fromOf(entry);
  if (from === undefined) return 0;
  return entries.filter(
    (other) => other.kind === entry.kind && other.key !== entry.key && isWaiting(other) && fromOf(other) === from,
  ).length;
}

/** @param {Entry} entry */
function fromOf({ kind, item }) {
  if (kind === 'approval') return item.agent.agent_id;
  return kind === 'registration' && item.may_decide ? item.network : undefined;
}
