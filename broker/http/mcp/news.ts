/** Watches an agent's permissions for a client of 2026-07-28 that listens (subscriptions/listen). */
import type { PermissionWatch } from '../../../mcp/tools/permission-watch.ts';
import { ownersChangeIn } from '../../audit/changes.ts';
import type { Services } from '../../services.ts';

/** Permissions are also polled, because not every change comes from an owner: grants expire, and governance files are applied. */
const CHECK_INTERVAL_MS = 30_000;
/** The state before the first change has to be read, so that the change can be detected. */
const FIRST_CHECK_MS = 5_000;

/**
 * Reads the permissions now, and again after each change by an owner of the organisation, until `over` aborts or the client's access ends; then calls
 * `end`. `permissions` itself reports what changed. Resolves after the first read.
 */
export async function watchPermissions(
  { changes }: Services,
  organisationId: string,
  permissions: PermissionWatch,
  { over, end }: { over: AbortSignal; end: () => void },
): Promise<void> {
  const watch = changes.watch(ownersChangeIn(organisationId).id);
  over.addEventListener('abort', watch.end, { once: true });
  if (over.aborted) watch.end();
  await permissions.soon(FIRST_CHECK_MS);
  const watchChanges = async () => {
    while (!watch.over()) {
      await watch.news(CHECK_INTERVAL_MS);
      const found = watch.over() ? undefined : await permissions.now();
      if (found?.ok === false && found.error.status === 401) break;
    }
    watch.end();
    end();
  };
  void watchChanges().catch(end);
}
