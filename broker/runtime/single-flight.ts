/** Deduplicates concurrent attempts per key: callers during an attempt share its result. */
export type SingleFlight<Result> = (key: string, attempt: () => Promise<Result>) => Promise<Result>;

/** Creates one. Nothing is cached after an attempt, whether it succeeded or failed. */
export function singleFlight<Result>(): SingleFlight<Result> {
  const running = new Map<string, Promise<Result>>();
  return (key, attempt) => {
    const found = running.get(key);
    if (found) return found;
    const begun = attempt().finally(() => running.delete(key));
    running.set(key, begun);
    return begun;
  };
}
