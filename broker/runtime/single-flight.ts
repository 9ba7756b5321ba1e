/** One attempt at a time for a key: whoever asks for the same meanwhile gets what the attempt comes to. */
export type SingleFlight<Result> = (key: string, attempt: () => Promise<Result>) => Promise<Result>;

/** Makes one. Nothing is kept once an attempt is over, whether it succeeded or failed. */
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
