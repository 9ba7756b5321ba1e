/** Held calls, as their owners read them, and whoever has the link of one. */

import { statusAt } from '../audit/approval-state.ts';
import type { Broker, Uses } from '../broker.ts';
import { SealError } from '../crypto/seal.ts';
import type { Compiled } from '../facts/compiled.ts';
import type { JsonObject, JsonValue } from '../policy/facts.ts';
import {
  findHeldCall,
  findHeldCallById,
  type HeldCall,
  type HeldCallFilter,
  listHeldCalls,
} from '../store/held-calls.ts';
import { countWaiting } from '../store/inbox.ts';
import type { Db } from '../store/store.ts';
import { readHeldRequest } from './held-call.ts';
import { rawOf } from './held-request.ts';
import { openAsked } from './sealed.ts';
import { type ShownRequest, shownRequest } from './shown-request.ts';

/** A page of an organisation's, newest first; pending ones oldest first, because these run out first. `next`: of the next page. */
export async function listHeld(
  { store, clock }: Pick<Broker, 'store' | 'clock'>,
  organisationId: string,
  page: HeldCallFilter & { before?: string | undefined; limit: number },
): Promise<{ held: HeldCall[]; next: string | null }> {
  const held = await listHeldCalls(store.db, organisationId, { ...page, now: clock() });
  return { held, next: held.length === page.limit ? (held.at(-1)?.id ?? null) : null };
}

/** How many held calls of an organisation wait, and which one has waited longest. */
export async function waitingIn(
  broker: Pick<Broker, 'store' | 'clock'>,
  organisationId: string,
): Promise<{ approvals: number; next: string | null }> {
  const [{ approvals }, { held }] = await Promise.all([
    countWaiting(broker.store.db, organisationId, broker.clock()),
    listHeld(broker, organisationId, { status: 'pending', limit: 1 }),
  ]);
  return { approvals, next: held[0]?.id ?? null };
}

/** One of the organisation; or undefined. */
export const findHeld = (db: Db, organisationId: string, id: string): Promise<HeldCall | undefined> =>
  findHeldCall(db, organisationId, id);

/** One by its id alone, which is a capability; or undefined. */
export const findHeldById = (db: Db, id: string): Promise<HeldCall | undefined> => findHeldCallById(db, id);

/**
 * The exact request that would be sent. Null: it was altered in the store; then there is nothing to show, and an approval of it
 * comes to nothing.
 */
export async function openHeld(
  services: Uses<'log' | 'store' | 'vault'> & { compiled: Compiled },
  held: HeldCall,
): Promise<ShownRequest | null> {
  const opened = readHeldRequest(services, held);
  return opened ? await shownRequest(services, held, opened) : null;
}

/** Whether it can be corrected: it waits, and its body is an object of JSON, or there is none. */
export function isCorrectable(services: Uses<'clock' | 'log' | 'vault'>, held: HeldCall): boolean {
  if (statusAt(held, services.broker.clock()) !== 'pending') return false;
  const request = readHeldRequest(services, held);
  return request !== undefined && mayBeOther(request);
}

/** Neither the bytes of a client nor a body that is no object. */
export const mayBeOther = (request: JsonObject): boolean =>
  rawOf(request) === undefined && request.encoding === undefined && !Array.isArray(request.data);

/** What its agent had asked, of one that was corrected; null: it is that, or was altered in the store, which is logged. */
export function askedOf(
  { broker }: Uses<'log' | 'vault'>,
  held: HeldCall,
): { endpoint: string; body: JsonValue } | null {
  if (held.asked === null) return null;
  try {
    const { endpoint, data = null } = openAsked(broker, held, held.asked);
    return { endpoint: String(endpoint), body: data };
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    broker.log.error({ err: error, security: true, approval: held.id }, 'what an agent asked cannot be opened');
    return null;
  }
}
