/**
 * File work in a folder that may be a hanging mount (AUDIT_FOLDER). One piece of work runs at a time, and while one hangs none is started:
 * it cannot be cancelled, and it holds one of the few threads of the pool, which also resolves host names.
 */
import { performance } from 'node:perf_hooks';
import { makeSemaphore } from './semaphore.ts';
import { withTimeout } from './waits.ts';

/** The same as the timeout of a receiver. */
const TIMEOUT_MS = 30_000;

export const UNRESPONSIVE = Symbol('the folder does not answer');

export type RemoteFolder = {
  path: string;
  /** Runs `work`. Returns UNRESPONSIVE when it was not started, or continues in the background. Rejects with errors of `work`. */
  work<Value>(work: () => Promise<Value>): Promise<Value | typeof UNRESPONSIVE>;
  /** Whether work is running. A process with hanging work cannot exit. */
  isBusy(): boolean;
};

/** Creates it. `hangsAfterMs`: for tests. */
export function remoteFolder(path: string, hangsAfterMs = TIMEOUT_MS): RemoteFolder {
  const oneByOne = makeSemaphore(1);
  let begunAt: number | undefined;
  return {
    path,
    work: async (work) => {
      if (begunAt !== undefined && performance.now() - begunAt >= hangsAfterMs) return UNRESPONSIVE;
      let isAwaited = true;
      const done = oneByOne(async () => {
        if (!isAwaited) return UNRESPONSIVE;
        begunAt = performance.now();
        try {
          return await work();
        } finally {
          begunAt = undefined;
        }
      });
      const result = await withTimeout(done, hangsAfterMs, UNRESPONSIVE);
      isAwaited = false;
      return result as Awaited<typeof done>;
    },
    isBusy: () => begunAt !== undefined,
  };
}
