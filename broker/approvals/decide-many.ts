/** One owner's decision on several held calls, each by itself: what becomes of one changes nothing for the others. */

import { AuditUnavailable } from '../audit/audit-unavailable.ts';
import type { Changing, ChangingOwner } from '../audit/record-change.ts';
import type { Uses } from '../broker.ts';
import { withTimeout } from '../runtime/waits.ts';
import { findHeldCall, type HeldCall } from '../store/held-calls.ts';
import { type Decided, decideHeld, type OwnerDecision } from './decide.ts';
import type { Replays } from './replay.ts';

/** As many as one agent family may have waiting. */
export const MOST_DECIDED = 100;

/** Calls that are made at the same time: well below what one agent family may have under way, beyond which they fail permanently. */
const MOST_UNDER_WAY = 4;

/** A held call as it was shown. */
export type ShownCall = { approvalId: string; requestHash: string };

/**
 * `decided`, or why not: as a decision by itself (`already_decided`, `changed`, `expired`, `not_found`); `not_decided`: the platform
 * took too long to answer the calls before it, nothing could be recorded, or the owner may not decide any more. `held`: as it is now; undefined of one that there is not.
 */
export type SettledItem = {
  approvalId: string;
  kind: Decided['kind'] | 'not_decided';
  held: HeldCall | undefined;
};

/**
 * Decides each by the ordinary operation, in this order, each with its own row and receipt. Approved calls are made a few at a time; the
 * answer waits for them until `patienceMs` are over, after which they go on without it and no further one is approved. `stillMay`: whether the owner
 * may decide at that moment, which is asked before each: the calls before it take their time.
 */
export async function decideMany(
  services: Changing & { replays: Replays } & Uses<'vault'>,
  { owner, how, correlationId }: ChangingOwner & { how: 'console' | 'api' },
  { status, note, items }: Pick<OwnerDecision, 'status' | 'note'> & { items: readonly ShownCall[] },
  { patienceMs, stillMay }: { patienceMs: number; stillMay: () => Promise<boolean> },
): Promise<SettledItem[]> {
  const { db } = services.broker.store;
  const began = performance.now();
  const left = () => Math.max(0, patienceMs - (performance.now() - began));
  const kinds = new Map<string, SettledItem['kind']>();
  const running = new Set<Promise<void>>();
  let isRecording = true;
  for (const { approvalId, requestHash } of items) {
    const word = { status, how, requestHash, ...(note !== undefined && { note }) };
    if (!isRecording || !(await hasRoom(running, left)) || !(await stillMay())) kinds.set(approvalId, 'not_decided');
    else {
      const decided = await decideHeld(services, owner, approvalId, word, { correlationId }).catch(unrecorded);
      isRecording = decided !== undefined;
      kinds.set(approvalId, decided?.kind ?? 'not_decided');
      if (decided?.kind === 'decided') follow(running, decided.replayed);
    }
  }
  await withTimeout(Promise.all(running), left());
  return await Promise.all(
    items.map(async ({ approvalId }) => ({
      approvalId,
      kind: kinds.get(approvalId) ?? 'not_decided',
      held: await findHeldCall(db, owner.organisation_id, approvalId),
    })),
  );
}

/** Waits until one more call may be made. False: not in time. */
async function hasRoom(running: ReadonlySet<Promise<void>>, left: () => number): Promise<boolean> {
  while (running.size >= MOST_UNDER_WAY) {
    if (left() === 0) return false;
    await withTimeout(Promise.race(running), left());
  }
  return true;
}

function follow(running: Set<Promise<void>>, replayed: Promise<void>): void {
  const settled = replayed.finally(() => running.delete(settled));
  running.add(settled);
}

/** Nothing can be recorded, so nothing is decided, and the next one would fare no better. */
function unrecorded(error: unknown): undefined {
  if (error instanceof AuditUnavailable) return undefined;
  throw error;
}
