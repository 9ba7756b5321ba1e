/** Reads held calls for owners, and for holders of a call's link. */

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

/**
 * Lists a page of an organisation's held calls, newest first; pending ones oldest first, because these expire first. `next`: cursor of the next page.
 */
export async function listHeld(
  { store, clock }: Pick<Broker, 'store' | 'clock'>,
  organisationId: string,
  page: HeldCallFilter & { before?: string | undefined; limit: number },
): Promise<{ held: HeldCall[]; next: string | null }> {
  const held = await listHeldCalls(store.db, organisationId, { ...page, now: clock() });
  return { held, next: held.length === page.limit ? (held.at(-1)?.id ?? null) : null };
}

/** Returns how many held calls of an organisation are pending, and which is the oldest. */
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

/** Finds a held call of the organisation. */
export const findHeld = (db: Db, organisationId: string, id: string): Promise<HeldCall | undefined> =>
  findHeldCall(db, organisationId, id);

/** Finds a held call by its id alone, which is a capability. */
export const findHeldById = (db: Db, id: string): Promise<HeldCall | undefined> => findHeldCallById(db, id);

/**
 * Opens the exact request that would be sent. Null when it was altered in the store: then nothing can be shown, and an approval would not be
 * executed.
 */
export async function openHeld(
  services: Uses<'log' | 'store' | 'vault'> & { compiled: Compiled },
  held: HeldCall,
): Promise<ShownRequest | null> {
  const opened = readHeldRequest(services, held);
  return opened ? await shownRequest(services, held, opened) : null;
}

/** Whether the call can be corrected: it is pending, and its body is a JSON object or absent. */
export function isCorrectable(services: Uses<'clock' | 'log' | 'vault'>, held: HeldCall): boolean {
  if (statusAt(held, services.broker.clock()) !== 'pending') return false;
  const request = readHeldRequest(services, held);
  return request !== undefined && mayBeOther(request);
}

/** Whether an owner can edit the request: not when it holds a client's raw bytes, or a body that is not an object. */
export const mayBeOther = (request: JsonObject): boolean =>
  rawOf(request) === undefined && typeof request.data === 'object' && !Array.isArray(request.data);

/**
 * Returns what the agent originally requested, for a corrected call; null when it was not corrected, or when the value was altered in the store,
 * which is logged.
 */
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
    broker.log.error(
      { err: error, security: true, approval: held.id },
      'the original request of an agent cannot be decrypted',
    );
    return null;
  }
}
