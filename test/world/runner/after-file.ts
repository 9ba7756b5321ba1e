const waiting: (() => unknown)[] = [];

/**
 * Registers a cleanup to run after this test file, in reverse order. Can be called anywhere: vitest ignores an `afterAll` that is called from a hook
 * or a test.
 */
export function afterFile(clean: () => unknown): void {
  waiting.push(clean);
}

/** Runs the registered cleanups. */
export async function cleanUp(): Promise<void> {
  const errors: unknown[] = [];
  for (const clean of waiting.splice(0).reverse()) {
    try {
      await clean();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw new AggregateError(errors, 'not everything could be cleaned up after the tests');
}
