/**
 * Does work for each of many things, some at once, and begins no more of it when patience is over: somebody waits for it. What the
 * work throws is thrown on.
 *
 * @returns those that were not begun
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
