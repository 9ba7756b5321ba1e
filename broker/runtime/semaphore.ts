/** Limits concurrent work; the rest waits in FIFO order. */
export type Semaphore = <Value>(work: () => Promise<Value>) => Promise<Value>;

/** `count`: how much work may run concurrently. */
export function makeSemaphore(count: number): Semaphore {
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

/** The same for work of several owners: each has at most `most` slots, and a waiting owner that is at its limit is skipped. */
export type SharedSemaphore = <Value>(owner: string, work: () => Promise<Value>) => Promise<Value>;

/** `count`: the limit of concurrent work of all owners together. */
export function makeSharedSemaphore(count: number, most: number): SharedSemaphore {
  const waiting: { owner: string; begin(): void }[] = [];
  const held = new Map<string, number>();
  let taken = 0;
  const hasPlace = (owner: string): boolean => taken < count && (held.get(owner) ?? 0) < most;
  const take = (owner: string): void => {
    taken++;
    held.set(owner, (held.get(owner) ?? 0) + 1);
  };
  const release = (owner: string): void => {
    taken--;
    const left = (held.get(owner) ?? 0) - 1;
    if (left > 0) held.set(owner, left);
    else held.delete(owner);
    // One slot became free, so at most one waiting work can start.
    const next = waiting.findIndex((one) => hasPlace(one.owner));
    for (const one of next < 0 ? [] : waiting.splice(next, 1)) {
      take(one.owner);
      one.begin();
    }
  };
  return async (owner, work) => {
    if (hasPlace(owner)) take(owner);
    else await new Promise<void>((begin) => waiting.push({ owner, begin }));
    try {
      return await work();
    } finally {
      release(owner);
    }
  };
}
