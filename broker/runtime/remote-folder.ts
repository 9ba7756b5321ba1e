/**
 * Work on the files of a folder that may be a mount that hangs (AUDIT_FOLDER). One piece of work goes on at a time, and while one does not come back
 * none is begun: it cannot be cancelled, and it holds one of the few threads of the pool, in which names of hosts are looked up as well.
 */
import { performance } from 'node:perf_hooks';
import { makePlaces } from './places.ts';
import { withTimeout } from './waits.ts';

/** As long as a receiver has to answer. */
const HANGS_AFTER_MS = 30_000;

export const HANGS = Symbol('the folder does not answer');

export type RemoteFolder = {
  path: string;
  /** What `work` comes to. HANGS: it was not begun, or goes on without whoever asked for it. Rejects with what it throws. */
  work<Value>(work: () => Promise<Value>): Promise<Value | typeof HANGS>;
  /** Whether something goes on. A process in which it hangs cannot exit. */
  isBusy(): boolean;
};

/** Makes it. `hangsAfterMs`: for tests. */
export function remoteFolder(path: string, hangsAfterMs = HANGS_AFTER_MS): RemoteFolder {
  const oneByOne = makePlaces(1);
  let begunAt: number | undefined;
  return {
    path,
    work: async (work) => {
      if (begunAt !== undefined && performance.now() - begunAt >= hangsAfterMs) return HANGS;
      let isAwaited = true;
      const done = oneByOne(async () => {
        if (!isAwaited) return HANGS;
        begunAt = performance.now();
        try {
          return await work();
        } finally {
          begunAt = undefined;
        }
      });
      const result = await withTimeout(done, hangsAfterMs, HANGS);
      isAwaited = false;
      return result as Awaited<typeof done>;
    },
    isBusy: () => begunAt !== undefined,
  };
}
