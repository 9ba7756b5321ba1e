// The order of the list. Equal calls share one slot, so that thirty of them are one line. Nothing moves while the list is shown: a new call
// joins its group or comes last, and two lines never merge.
/** @typedef {import('/console/inbox/entries.js').Entry} Entry */
import { isWaiting } from '/console/inbox/entries.js';

/**
 * A position in the list, for one entry or for a group. `of`: what its calls have in common; undefined for an entry that is not a call.
 *
 * @typedef {{ id: string, of: string | undefined, grouped: boolean, keys: readonly string[] }} Slot
 */

/** The number of equal calls from which on they form a group: fewer are easier to read one by one. */
const GROUPED_FROM = 5;

/**
 * Returns the key that equal calls share: agent, platform, connection, scope and operation (the template of their sentence, or the method). It is
 * encoded data, never a text that names of agents or paths could imitate.
 *
 * @param {Entry} entry
 */
function groupOf({ kind, item }) {
  if (kind !== 'approval') return undefined;
  const { agent, platform, connection, scope, method, sentence } = item;
  const operation = sentence.template ?? method;
  return JSON.stringify([agent.agent_id, platform, connection?.connection_id ?? null, scope, operation]);
}

/**
 * Returns the slots after entries arrived and left. `before`: the previous slots; empty: everything is arranged from scratch.
 *
 * @param {readonly Slot[]} before
 * @param {readonly Entry[]} entries
 * @returns {Slot[]}
 */
export function arrange(before, entries) {
  const present = new Set(entries.map(({ key }) => key));
  const waiting = new Set(entries.filter(isWaiting).map(({ key }) => key));
  const slots = before
    .map((slot) => ({ ...slot, keys: slot.keys.filter((key) => present.has(key)) }))
    .filter(({ keys }) => keys.length > 0);
  const known = new Set(slots.flatMap(({ keys }) => keys));
  const fresh = entries.filter(({ key }) => !known.has(key));
  const crowded = before.length === 0 ? crowdedIn(fresh) : new Set();
  for (const entry of fresh) {
    const of = groupOf(entry);
    const same = of === undefined ? [] : slots.filter((slot) => slot.of === of);
    // A group whose calls are all decided is closed: later calls start a new one.
    const group = same.findLast(({ grouped, keys }) => grouped && keys.some((key) => waiting.has(key)));
    if (group) group.keys = [...group.keys, entry.key];
    else {
      const alone = same.filter(({ grouped, keys }) => !grouped && keys.some((key) => waiting.has(key)));
      const grouped = of !== undefined && (crowded.has(of) || alone.length >= GROUPED_FROM - 1);
      slots.push({ id: `${grouped ? 'group' : 'one'}-${entry.key}`, of, grouped, keys: [entry.key] });
    }
  }
  return slots;
}

/** @param {readonly Entry[]} entries */
function crowdedIn(entries) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const entry of entries) {
    const of = groupOf(entry);
    if (of !== undefined) counts.set(of, (counts.get(of) ?? 0) + 1);
  }
  return new Set([...counts].filter(([, count]) => count >= GROUPED_FROM).map(([of]) => of));
}
