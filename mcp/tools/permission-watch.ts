/** What the agent may do, as last seen: tool descriptions say it, and change with it. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Answer } from '../client/agent-client.ts';
import type { Permissions } from '../client/permissions.ts';
import type { ToolClient } from './tool-client.ts';

export type PermissionWatch = {
  /** As last seen; asks the broker first when nothing was seen yet, and gives up after `patienceMs`. */
  soon(patienceMs: number): Promise<Permissions | undefined>;
  /** As they are now. */
  now(): Promise<Answer<Permissions>>;
  /** Looks again, in the background, because something hints at a change. */
  refreshSoon(): void;
};

/** `onChange` is called when the permissions are others than those that `soon` answered last. */
export function permissionWatch(client: Pick<ToolClient, 'permissions'>, onChange: () => void): PermissionWatch {
  let seen: Permissions | undefined;
  let told: string | undefined;
  let looking: Promise<Answer<Permissions>> | undefined;

  const look = (): Promise<Answer<Permissions>> => {
    looking ??= client
      .permissions()
      .then((found): Answer<Permissions> => {
        if (found.ok) seen = found.value.permissions;
        else if (found.error.status === 403) seen = undefined;
        if (told !== undefined && told !== versionOf(seen)) {
          told = versionOf(seen);
          onChange();
        }
        return found.ok ? { ok: true, value: found.value.permissions } : found;
      })
      .finally(() => {
        looking = undefined;
      });
    return looking;
  };

  return {
    soon: async (patienceMs) => {
      if (seen === undefined) {
        const giveUp = new AbortController();
        await Promise.race([look(), sleep(patienceMs, undefined, { signal: giveUp.signal }).catch(() => {})]);
        giveUp.abort();
      }
      told = versionOf(seen);
      return seen;
    },
    now: look,
    // Nobody waits for it: what keeps it from being asked is met again by whoever asks next.
    refreshSoon: () => void look().catch(() => {}),
  };
}

const versionOf = (permissions: Permissions | undefined): string => permissions?.version ?? 'none';
