/** Limits the use of a static key on `/proxy` to its own connection, while that is live. */
import type { StaticKeyUse } from '../auth/principal.ts';

/**
 * Returns why a request is refused for this key; undefined when it is for the key's connection. Reveals nothing about other connections.
 * `isGrantable`: whether an owner can change that.
 *
 * @param named the connection in the address; `foundId`: id of that connection, if the agent has a grant on it
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
