/** Stops what a bench has started, in reverse order, at its end and when it is interrupted. */

type Started = { stop(): Promise<void> };

/** Returns a stack for `await using`. Until it is disposed, SIGINT and SIGTERM dispose it and end the process with exit code 130. */
export function cleanupStack(): AsyncDisposableStack {
  const stack = new AsyncDisposableStack();
  const interrupted = () => void stack.disposeAsync().finally(() => process.exit(130));
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
  stack.defer(() => void process.off('SIGINT', interrupted).off('SIGTERM', interrupted));
  return stack;
}

/** Returns a function that has the stack stop what it is given, and returns it. */
export const keeper =
  (stack: AsyncDisposableStack) =>
  <T extends Started>(started: T): T => {
    stack.defer(() => started.stop());
    return started;
  };
