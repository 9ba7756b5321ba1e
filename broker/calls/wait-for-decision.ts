/** A call whose client waits for a person: it joins what the same request holds already, and ends with what became of it. */

import type { Outcome } from '../audit/outcome.ts';
import { readSettled } from '../audit/read-settled.ts';
import type { Recorded } from '../audit/recorder.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import type { CallLease } from '../egress/call-budget.ts';
import { closeHeldJoin, openHeldJoin } from '../store/held-joins.ts';
import { isStoreOutage } from '../store/store-fault.ts';
import type { ApprovalTable } from '../store/tables/approvals.ts';
import type { Acted } from './attempt.ts';
import type { CallServices } from './call-services.ts';
import { findJoined, type HeldEnd, readHeld } from './held-raw.ts';
import type { HeldJoin } from './raw-request.ts';

/** How long a client can wait for a person. */
export type Wait = {
  /** Milliseconds; 0: it is told at once that the call is held. */
  ms: number;
  /** Takes a place among the requests that wait for this held call, and answers how to leave it; undefined: there is none. */
  enter(approvalId: string): (() => void) | undefined;
};

/** What became of a held call that was waited for; `pending` when nobody decided in time. */
export type Waited = { kind: 'waited'; approvalId: string; end: HeldEnd; found: ApprovalTable };

/** The store was away when a held call was to be read: it may have been approved meanwhile, and sent. `cause`: the store's error. */
export class HeldUnread extends Error {
  readonly approvalId: string;
  constructor(approvalId: string, cause: unknown) {
    super('the store was away when a held call was to be read', { cause });
    this.approvalId = approvalId;
  }
}

/** What `work` on a held call comes to. Throws HeldUnread in place of an outage of the store. */
export async function orHeldUnread<T>(approvalId: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw isStoreOutage(error) ? new HeldUnread(approvalId, error) : error;
  }
}

/** Each time that a request was to join a held call, or to be held, another replica did the same. */
export type JoinsRaced = { kind: 'joins_raced' };

type Waiting = {
  wait: Wait;
  /** Of this request; undefined: it joins none, and none joins it. */
  join: HeldJoin | undefined;
  /** Whether it may join one that is held already. */
  mayJoin: boolean;
  /** Aborted when the client has left. */
  left: AbortSignal | undefined;
  /** Whoever waits for a person holds no place among the calls. */
  lease: CallLease | undefined;
};

/** Another replica may hold the same request, or be done with it, at the same moment. */
const MOST_JOINS = 3;

/**
 * Makes a call, or joins the held one of the same request, and waits where it is held.
 *
 * @param make holds, refuses or makes it; `joined` where the same request was held meanwhile
 * @throws HeldUnread
 */
export async function makeOrWait(
  services: CallServices,
  who: AgentPrincipal,
  waiting: Waiting,
  make: () => Promise<Acted>,
): Promise<Recorded<Outcome> | Waited | JoinsRaced> {
  const { join, mayJoin } = waiting;
  for (let tries = 0; tries < MOST_JOINS; tries++) {
    const joined = join && mayJoin ? await findJoined(services.broker, who, join) : undefined;
    if (joined !== undefined) return await waitForDecision(services, who, joined, waiting);
    const acted = await make();
    if (acted === 'joined') continue;
    if (acted.value.kind !== 'held') return acted;
    return await waitForDecision(services, who, acted.value.approvalId, waiting);
  }
  return { kind: 'joins_raced' };
}

/** Waits until it was decided and made, or the time is over. */
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
    if (!found) throw new Error('a held call of this agent is not there any more');
    return found;
  };
  try {
    return await orHeldUnread(approvalId, async () => {
      if (openUntil !== undefined) await openHeldJoin(broker.store.db, place, openUntil);
      const { end, found } = await readSettled(services, approvalId, read, {
        waitMs: leave === undefined ? 0 : wait.ms,
        left,
        isSettled: ({ isSettled }) => isSettled,
        changesAt: ({ found: { status, expires_at } }) =>
          status === 'pending' ? expires_at : Number.POSITIVE_INFINITY,
      });
      // Without it, it is closed when the time is over.
      if (openUntil !== undefined) await closeHeldJoin(broker.store.db, place, openUntil).catch(() => {});
      return { kind: 'waited', approvalId, end, found };
    });
  } finally {
    leave?.();
  }
}
