/**
 * A bounded cache with approximate LRU eviction. It has two halves instead of an order: a value that is used again moves from the older to
 * the newer half, which becomes the older one when it is full. So a value in constant use changes no map and creates no garbage.
 */
export type RecentlyUsed<Value> = {
  /** Returns the value of a key; undefined when there is none. */
  get(key: string): Value | undefined;
  /** `bytes`: its size, if the cache is limited by bytes. A value larger than half of the limit is not stored. */
  set(key: string, value: Value, bytes?: number): void;
  delete(key: string): void;
  /** Number of cached values. */
  readonly size: number;
};

type Entry<Value> = { readonly value: Value; readonly bytes: number };

/**
 * `most`: number of values. A value is evicted after that many others were added, and after half as many at the earliest. `mostBytes`:
 * limit of all sizes together; evicts in the same way.
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
