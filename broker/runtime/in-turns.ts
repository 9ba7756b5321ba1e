/**
 * Runs work for many items, `concurrency` concurrently, and starts no more after `timeoutMs`. Rethrows errors of the work.
 *
 * @returns the items that were not started
 */
export async function inTurns<Item>(
  items: readonly Item[],
  { concurrency, timeoutMs }: { concurrency: number; timeoutMs: number },
  work: (item: Item) => Promise<void>,
): Promise<Item[]> {
  const waiting = [...items];
  const began = performance.now();
  const takeTurns = async () => {
    while (performance.now() - began < timeoutMs) {
      const item = waiting.shift();
      if (item === undefined) return;
      await work(item);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, takeTurns));
  return waiting;
}
