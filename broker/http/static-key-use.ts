/** What a static key is good for on the raw door: its own connection, as long as it is live. */
import type { StaticKeyUse } from '../auth/principal.ts';

/**
 * Why a request is not for the connection of its key; undefined: it is. Of other connections nothing is told. `isGrantable`: an owner can
 * change that.
 *
 * @param named the connection in the address; `foundId`: of the connection that it is and that the agent has a grant on, if any
 */
export function notForKey(
  key: StaticKeyUse,
  named: string,
  foundId: string | null | undefined,
): { missing: string; isGrantable: boolean } | undefined {
  if (foundId === key.connectionId) return undefined;
  const own = key.connectionLabel ?? key.connectionId;
  const isOwn = named === own || named === key.connectionId;
  const missing = isOwn
    ? 'The agent of this static key has no grant on its connection.'
    : `This static key is good for one connection only: use /proxy/${encodeURIComponent(own)}/.`;
  return { missing, isGrantable: isOwn };
}
