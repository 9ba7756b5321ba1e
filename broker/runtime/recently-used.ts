/**
 * A bounded cache that drops what was not used for longest. It has two halves instead of an order: what is used again moves from
 * the older to the newer one, which becomes the older one when it is full. So a value that is used all the time changes no map,
 * and leaves no garbage behind.
 */
export type RecentlyUsed<Value> = {
  /** The value of a key; undefined when there is none. */
  get(key: string): Value | undefined;
  /** `bytes`: what it takes, where that is bounded. A value of more than half of all is not kept. */
  set(key: string, value: Value, bytes?: number): void;
  delete(key: string): void;
  /** How many values are kept. */
  readonly size: number;
};

type Entry<Value> = { readonly value: Value; readonly bytes: number };

/**
 * `most`: how many values are kept. One is dropped once that many others came, and at the earliest after half as many. `mostBytes`:
 * of all of them together; the same goes for it.
 */
export function recentlyUsed<Value>(most: number, mostBytes = Number.POSITIVE_INFINITY): RecentlyUsed<Value> {
  const half = Math.floor(most / 2);
  const halfBytes = mostBytes / 2;
  let newer = new Map<string, Entry<Value>>();
  let newerBytes = 0;
  let older = new Map<string, Entry<Value>>();
  const drop = (key: string): void => {
    newerBytes -= newer.get(key)?.bytes ?? 0;
    newer.delete(key);
    older.delete(key);
  };
  const add = (key: string, entry: Entry<Value>): void => {
    drop(key);
    if (entry.bytes > halfBytes) return;
    if (newer.size >= half || newerBytes + entry.bytes > halfBytes) {
      older = newer;
      newer = new Map();
      newerBytes = 0;
    }
    newer.set(key, entry);
    newerBytes += entry.bytes;
  };
  return {
    get: (key) => {
      const found = newer.get(key);
      if (found !== undefined) return found.value;
      const aged = older.get(key);
      if (aged !== undefined) add(key, aged);
      return aged?.value;
    },
    set: (key, value, bytes = 0) => add(key, { value, bytes }),
    delete: drop,
    get size() {
      return newer.size + older.size;
    },
  };
}
