/** A call whose client waits for a decision: it joins an equal held request, and ends with its result. */

import type { Outcome } from '../audit/outcome.ts';
import { readSettled } from '../audit/read-settled.ts';
import type { Recorded } from '../audit/recorder.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import type { CallLease } from '../egress/call-lease.ts';
import { closeHeldJoin, openHeldJoin } from '../store/held-joins.ts';
import { isStoreOutage } from '../store/store-fault.ts';
import type { ApprovalTable } from '../store/tables/approvals.ts';
import type { Acted } from './attempt.ts';
import type { CallServices } from './call-services.ts';
import { findJoined, type HeldEnd, readHeld } from './held-raw.ts';
import type { HeldJoin } from './raw-request.ts';

/** How long a client can wait for a person. */
export type Wait = {
  /** Milliseconds; 0: the client is immediately told that the call is held. */
  ms: number;
  /** Takes a waiting slot for this held call and returns the function that leaves it; undefined when there is no slot. */
  enter(approvalId: string): (() => void) | undefined;
};

/** The result of a held call that was waited for; `pending` when nobody decided in time. */
export type Waited = { kind: 'waited'; approvalId: string; end: HeldEnd; found: ApprovalTable };

/** The store was unavailable when a held call was read: the call may have been approved and sent meanwhile. `cause`: the store's error. */
export class HeldUnread extends Error {
  readonly approvalId: string;
  constructor(approvalId: string, cause: unknown) {
    super('the store was unavailable when a held call was to be read', { cause });
    this.approvalId = approvalId;
  }
}

/** Runs `work` on a held call; throws HeldUnread in place of a store outage. */
export async function orThrowHeldUnread<T>(approvalId: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw isStoreOutage(error) ? new HeldUnread(approvalId, error) : error;
  }
}

/** Lost race: each time the request was to join a held call, or to be held, another replica did the same. */
export type JoinsRaced = { kind: 'joins_raced' };

type Waiting = {
  wait: Wait;
  /** Join key of this request; undefined when it neither joins nor is joined. */
  join: HeldJoin | undefined;
  /** Whether it may join a call that is already held. */
  mayJoin: boolean;
  /** Aborted when the client has disconnected. */
  left: AbortSignal | undefined;
  /** Released before waiting: a waiting client takes no slot of the call budget. */
  lease: CallLease | undefined;
};

/** Retries when another replica holds the same request, or finishes it, concurrently. */
const MAX_JOINS = 3;

/**
 * Makes a call, or joins the equal held one, and waits when it is held.
 *
 * @param make holds, refuses or makes the call; `joined` when an equal request was held concurrently
 * @throws HeldUnread
 */
export async function makeOrWait(
  services: CallServices,
  who: AgentPrincipal,
  waiting: Waiting,
  make: () => Promise<Acted>,
): Promise<Recorded<Outcome> | Waited | JoinsRaced> {
  const { join, mayJoin } = waiting;
  for (let tries = 0; tries < MAX_JOINS; tries++) {
    const joined = join && mayJoin ? await findJoined(services.broker, who, join) : undefined;
    if (joined !== undefined) return await waitForDecision(services, who, joined, waiting);
    const acted = await make();
    if (acted === 'joined') continue;
    if (acted.value.kind !== 'held') return acted;
    return await waitForDecision(services, who, acted.value.approvalId, waiting);
  }
  return { kind: 'joins_raced' };
}

/** Waits until the call was decided and made, or the wait has timed out. */
async function waitForDecision(
  services: CallServices,
  who: AgentPrincipal,
  approvalId: string,
  { wait, join, left, lease }: Waiting,
): Promise<Waited> {
  lease?.release();
  const { broker } = services;
  const place = { organisation_id: who.agent.organisation_id, agent_id: who.agent.id, approval_id: approvalId };
  // Equal requests are told apart while this one is open, on every replica.
  const openUntil = join && join.openMs > 0 ? broker.clock() + join.openMs : undefined;
  const leave = wait.enter(approvalId);
  const read = async () => {
    const found = await readHeld(broker, who, approvalId);
    if (!found) throw new Error('a held call of this agent no longer exists');
    return found;
  };
  try {
    return await orThrowHeldUnread(approvalId, async () => {
      if (openUntil !== undefined) await openHeldJoin(broker.store.db, place, openUntil);
      const { end, found } = await readSettled(services, approvalId, read, {
        waitMs: leave === undefined ? 0 : wait.ms,
        left,
        isSettled: ({ isSettled }) => isSettled,
        changesAt: ({ found: { status, expires_at } }) =>
          status === 'pending' ? expires_at : Number.POSITIVE_INFINITY,
      });
      // Best effort: otherwise it closes when its time has passed.
      if (openUntil !== undefined) await closeHeldJoin(broker.store.db, place, openUntil).catch(() => {});
      return { kind: 'waited', approvalId, end, found };
    });
  } finally {
    leave?.();
  }
}
