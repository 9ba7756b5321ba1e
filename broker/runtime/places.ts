/** Work of which only so much goes on at once: the rest waits, in the order of asking. */
export type Places = <Value>(work: () => Promise<Value>) => Promise<Value>;

/** `count`: how much of it may go on at once. */
export function makePlaces(count: number): Places {
  const waiting: (() => void)[] = [];
  let taken = 0;
  return async (work) => {
    if (taken >= count) await new Promise<void>((resolve) => waiting.push(resolve));
    else taken++;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else taken--;
    }
  };
}
