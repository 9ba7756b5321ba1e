/** Decides several held calls of one owner. Each decision is independent: the result of one does not affect the others. */

import { AuditUnavailable } from '../audit/audit-unavailable.ts';
import { AuthorNotAllowed } from '../audit/author-role.ts';
import type { Changing, ChangingOwner } from '../audit/record-change.ts';
import type { Uses } from '../broker.ts';
import { withTimeout } from '../runtime/waits.ts';
import { findHeldCall, type HeldCall } from '../store/held-calls.ts';
import { isStoreOutage } from '../store/store-fault.ts';
import { type Decided, decideHeld, type OwnerDecision } from './decide.ts';
import type { Replays } from './replay.ts';

/** As many as one agent family may have pending. */
export const MAX_DECIDED = 100;

/** Approved calls that run concurrently: well below the limit of concurrent calls of one agent family, beyond which they fail permanently. */
const MAX_CONCURRENT = 4;

/** Identifies a held call and the request that was shown for it. */
export type ShownCall = { approvalId: string; requestHash: string };

/**
 * `kind`: the result of the single decision (`already_decided`, `changed`, `expired`, `not_found`), or `not_decided`: the platform took too long to
 * answer earlier calls, nothing could be recorded, or the owner may not decide any more. `held`: the call's current state, or as it was decided while
 * the store is unavailable; undefined when there is no such call, or its state cannot be read.
 */
export type SettledItem = {
  approvalId: string;
  kind: Decided['kind'] | 'not_decided';
  held: HeldCall | undefined;
};

/**
 * Decides each call in the given order, as a single decision would, each with its own audit row and receipt. Approved calls run a few at a time. The
 * result waits for them up to `timeoutMs`; after that they continue in the background and no further call is approved. When the store becomes
 * unavailable after a call was decided, or the owner may not decide any more, the rest stays undecided; before that, the store's error is thrown.
 */
export async function decideMany(
  services: Changing & { replays: Replays } & Uses<'vault' | 'storeOutage'>,
  { owner, session, how, correlationId }: ChangingOwner & { how: 'console' | 'api' },
  { status, note, items }: Pick<OwnerDecision, 'status' | 'note'> & { items: readonly ShownCall[] },
  { timeoutMs }: { timeoutMs: number },
): Promise<SettledItem[]> {
  const { store, storeOutage } = services.broker;
  const began = performance.now();
  const left = () => Math.max(0, timeoutMs - (performance.now() - began));
  const kinds = new Map<string, SettledItem['kind']>();
  const made = new Map<string, HeldCall>();
  const running = new Set<Promise<void>>();
  let isRecording = true;
  /** Maps what also prevents the next decision to undefined: a failure of the store, or a lost role. Decisions made before are on record. */
  const orUnavailable = (error: unknown): undefined => {
    if (error instanceof AuditUnavailable || error instanceof AuthorNotAllowed) return undefined;
    if (made.size === 0 || !isStoreOutage(error)) throw error;
    storeOutage.failed(error);
    return undefined;
  };
  for (const { approvalId, requestHash } of items) {
    const decision = { status, how, requestHash, ...(note !== undefined && { note }) };
    if (!isRecording || !(await hasRoom(running, left))) kinds.set(approvalId, 'not_decided');
    else {
      const decided = await decideHeld(services, owner, approvalId, decision, { correlationId, session }).catch(
        orUnavailable,
      );
      isRecording = decided !== undefined;
      kinds.set(approvalId, decided?.kind ?? 'not_decided');
      if (decided?.kind !== 'decided') continue;
      made.set(approvalId, decided.held);
      follow(running, decided.replayed);
    }
  }
  await withTimeout(Promise.all(running), left());
  return await Promise.all(
    items.map(async ({ approvalId }) => ({
      approvalId,
      kind: kinds.get(approvalId) ?? 'not_decided',
      held: await findHeldCall(store.db, owner.organisation_id, approvalId).catch(
        (error) => orUnavailable(error) ?? made.get(approvalId),
      ),
    })),
  );
}

/** Waits until one more call may be started. Returns false on timeout. */
async function hasRoom(running: ReadonlySet<Promise<void>>, left: () => number): Promise<boolean> {
  while (running.size >= MAX_CONCURRENT) {
    if (left() === 0) return false;
    await withTimeout(Promise.race(running), left());
  }
  return true;
}

function follow(running: Set<Promise<void>>, replayed: Promise<void>): void {
  const settled = replayed.finally(() => running.delete(settled));
  running.add(settled);
}
