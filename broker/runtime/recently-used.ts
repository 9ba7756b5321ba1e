/**
 * A bounded cache that drops what was not used for longest. It has two halves instead of an order: what is used again moves from
 * the older to the newer one, which becomes the older one when it is full. So a value that is used all the time changes no map,
 * and leaves no garbage behind.
 */
export type RecentlyUsed<Value> = {
  /** The value of a key; undefined when there is none. */
  get(key: string): Value | undefined;
  set(key: string, value: Value): void;
  delete(key: string): void;
  /** How many values are kept. */
  readonly size: number;
};

/** `most`: how many values are kept. One is dropped once that many others came, and at the earliest after half as many. */
export function recentlyUsed<Value>(most: number): RecentlyUsed<Value> {
  const half = Math.floor(most / 2);
  let newer = new Map<string, Value>();
  let older = new Map<string, Value>();
  const set = (key: string, value: Value): void => {
    if (newer.size >= half && !newer.has(key)) {
      older = newer;
      newer = new Map();
    }
    older.delete(key);
    newer.set(key, value);
  };
  return {
    get: (key) => {
      const found = newer.get(key);
      if (found !== undefined) return found;
      const aged = older.get(key);
      if (aged !== undefined) set(key, aged);
      return aged;
    },
    set,
    delete: (key) => {
      newer.delete(key);
      older.delete(key);
    },
    get size() {
      return newer.size + older.size;
    },
  };
}
