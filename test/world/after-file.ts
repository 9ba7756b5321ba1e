const waiting: (() => unknown)[] = [];

/**
 * Does something after this test file, the last thing first. To be called from wherever something is made: vitest itself
 * forgets an `afterAll` that is called from a hook or a test.
 */
export function afterFile(clean: () => unknown): void {
  waiting.push(clean);
}

/** Does what waits. */
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
