/** Counts the turns of the event loop from now until it is disposed. */
export function countTurns(): Disposable & { readonly turn: number } {
  let turn = 0;
  let isOver = false;
  const count = () => {
    turn++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  return {
    get turn() {
      return turn;
    },
    [Symbol.dispose]: () => {
      isOver = true;
    },
  };
}
