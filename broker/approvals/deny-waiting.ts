import { AuthorNotAllowed } from '../audit/author-role.ts';
import type { Changing, ChangingOwner } from '../audit/record-change.ts';
import type { Uses } from '../broker.ts';
import type { HeldCallFilter } from '../store/held-calls.ts';
import { decideHeld } from './decide.ts';
import { listHeld } from './read-held.ts';
import type { Replays } from './replay.ts';

/** The most calls that one request denies: each has its own audit row and receipt. */
export const MAX_DENIED = 200;

/**
 * Denies the pending calls that match a filter, oldest first, MAX_DENIED at most: for an inbox that one agent has filled. Returns the ids denied,
 * and whether more wait. When it throws AuditUnavailable, the calls before are denied already. An owner who loses the role meanwhile denies no further
 * calls.
 */
export async function denyWaiting(
  services: Changing & { replays: Replays } & Uses<'vault'>,
  { owner, session, how, correlationId }: ChangingOwner & { how: 'console' | 'api' },
  filter: Omit<HeldCallFilter, 'status'>,
  note: string | undefined,
): Promise<{ denied: string[]; remaining: boolean }> {
  const page = { ...filter, status: 'pending', limit: MAX_DENIED + 1 } as const;
  const { held } = await listHeld(services.broker, owner.organisation_id, page);
  const denied: string[] = [];
  const decision = { status: 'denied', how, ...(note !== undefined && { note }) } as const;
  for (const { id } of held.slice(0, MAX_DENIED)) {
    try {
      const { kind } = await decideHeld(services, owner, id, decision, { correlationId, session });
      // Otherwise another owner decided it first, or it expired.
      if (kind === 'decided') denied.push(id);
    } catch (error) {
      if (denied.length === 0 || !(error instanceof AuthorNotAllowed)) throw error;
      return { denied, remaining: true };
    }
  }
  return { denied, remaining: held.length > MAX_DENIED };
}
