/**
 * Runs work for many items, `atOnce` concurrently, and starts no more after `patienceMs`. Rethrows errors of the work.
 *
 * @returns the items that were not started
 */
export async function inTurns<Item>(
  items: readonly Item[],
  { atOnce, patienceMs }: { atOnce: number; patienceMs: number },
  work: (item: Item) => Promise<void>,
): Promise<Item[]> {
  const waiting = [...items];
  const began = performance.now();
  const takeTurns = async () => {
    while (performance.now() - began < patienceMs) {
      const item = waiting.shift();
      if (item === undefined) return;
      await work(item);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, takeTurns));
  return waiting;
}
