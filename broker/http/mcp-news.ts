/** For a client of 2026-07-28 that listens (subscriptions/listen): when what its agent may do is looked at again. */
import type { PermissionWatch } from '../../mcp/tools/permission-watch.ts';
import { ownersChangeIn } from '../audit/changes.ts';
import type { Services } from '../services.ts';

/** Not everything that changes what an agent may do is an owner's doing: grants end, and files are applied. */
const LOOK_EVERY_MS = 30_000;
/** What is there before the first change has to be known, so that the change can be told from it. */
const FIRST_LOOK_MS = 5_000;

/**
 * Looks, and then again at each change that an owner of the organisation makes, until `over` or the client's access is; then
 * `end` is called. What changed is `permissions`' to tell. Resolves after the first look.
 */
export async function lookAtChanges(
  { changes }: Services,
  organisationId: string,
  permissions: PermissionWatch,
  { over, end }: { over: AbortSignal; end: () => void },
): Promise<void> {
  const watch = changes.watch(ownersChangeIn(organisationId).id);
  over.addEventListener('abort', watch.end, { once: true });
  if (over.aborted) watch.end();
  await permissions.soon(FIRST_LOOK_MS);
  const goOn = async () => {
    while (!watch.over()) {
      await watch.news(LOOK_EVERY_MS);
      const found = watch.over() ? undefined : await permissions.now();
      if (found?.ok === false && found.error.status === 401) break;
    }
    watch.end();
    end();
  };
  void goOn().catch(end);
}
