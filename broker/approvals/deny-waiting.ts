import type { Changing, ChangingOwner } from '../audit/record-change.ts';
import type { Uses } from '../broker.ts';
import type { HeldCallFilter } from '../store/held-calls.ts';
import { decideHeld } from './decide.ts';
import { listHeld } from './read-held.ts';
import type { Replays } from './replay.ts';

/** So many are denied by one request: each has its own row and receipt. */
export const DENIED_AT_ONCE = 200;

/**
 * Denies the pending calls that pass a filter, oldest first, DENIED_AT_ONCE at most: for an inbox that one agent has filled. Answers
 * which, and whether more wait. Throws AuditUnavailable: those before are denied.
 */
export async function denyWaiting(
  services: Changing & { replays: Replays } & Uses<'vault'>,
  { owner, how, correlationId }: ChangingOwner & { how: 'console' | 'api' },
  filter: Omit<HeldCallFilter, 'status'>,
  note: string | undefined,
): Promise<{ denied: string[]; remaining: boolean }> {
  const page = { ...filter, status: 'pending', limit: DENIED_AT_ONCE + 1 } as const;
  const { held } = await listHeld(services.broker, owner.organisation_id, page);
  const denied: string[] = [];
  const word = { status: 'denied', how, ...(note !== undefined && { note }) } as const;
  for (const { id } of held.slice(0, DENIED_AT_ONCE)) {
    const { kind } = await decideHeld(services, owner, id, word, { correlationId });
    // Whoever else decided it, or its time, was first.
    if (kind === 'decided') denied.push(id);
  }
  return { denied, remaining: held.length > DENIED_AT_ONCE };
}
