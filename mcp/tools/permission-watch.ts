/** Caches the agent's permissions for tool descriptions, and detects changes. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Permissions } from '../client/permissions.ts';
import type { Answer } from '../client/read-answers.ts';
import type { ToolClient } from './tool-client.ts';

export type PermissionWatch = {
  /** Returns the cached permissions; fetches them first if there are none, with timeout `timeoutMs`. */
  soon(timeoutMs: number): Promise<Permissions | undefined>;
  /** Fetches the current permissions. */
  now(): Promise<Answer<Permissions>>;
  /** Refreshes in the background, after a hint of a change. */
  refreshSoon(): void;
};

/** `onChange` is called when the permissions differ from those that `soon` returned last. */
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
    soon: async (timeoutMs) => {
      if (seen === undefined) {
        const giveUp = new AbortController();
        await Promise.race([look(), sleep(timeoutMs, undefined, { signal: giveUp.signal }).catch(() => {})]);
        giveUp.abort();
      }
      told = versionOf(seen);
      return seen;
    },
    now: look,
    // Errors are ignored: no caller waits for the result, and the next request meets the same error.
    refreshSoon: () => void look().catch(() => {}),
  };
}

const versionOf = (permissions: Permissions | undefined): string => permissions?.version ?? 'none';
