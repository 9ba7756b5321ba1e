// What stands in the inbox. An entry never moves while somebody looks at the list: what is new comes last, and what was
// decided stays in its place until it is put away, so that no button slips from under a finger.

const IDS = { approval: 'approval_id', access: 'request_id', registration: 'id' };

/** The id of a held call, an access request or a registration, as the owner API answers it. */
export const idOf = (kind, item) => item[IDS[kind]];

/** `{ key, kind, id, item, deadline }` of one. */
export function entryOf(kind, item) {
  const id = idOf(kind, item);
  // Whole seconds left, by the broker's clock: this machine's may be wrong.
  return { key: `${kind}-${id}`, kind, id, item, deadline: Date.now() + item.expires_in_seconds * 1000 };
}

/** Takes in what waits now. Who is no longer among it is `gone`: what became of it is not known yet. */
export function merge(entries, found) {
  const fresh = new Map(found.map((entry) => [entry.key, entry]));
  const kept = entries.map((entry) => {
    const now = fresh.get(entry.key);
    fresh.delete(entry.key);
    if (entry.became) return entry;
    return now ? { ...entry, ...now } : { ...entry, gone: true };
  });
  return [...kept, ...fresh.values()];
}

/** What became of one, in words and with a kind (good, bad or nothing): it waits no longer. */
export const settled = (entries, key, became) =>
  entries.map((entry) => (entry.key === key ? { ...entry, became } : entry));

export const isWaiting = (entry) => !entry.became && !entry.gone;
