/**
 * Deletes audit rows whose retention has expired, oldest first, in small steps in the background. Their hashes stay in the receipt log. An event
 * announces which rows are deleted; they are deleted once a checkpoint covers the event, and no export with an earlier checkpoint is running,
 * so that a verifier can always tell them from rows that somebody removed.
 */

import { shownFlags } from '../audit/audit-flags.ts';
import { byBroker, type Changing, recordChange } from '../audit/record-change.ts';
import type { Broker, Uses } from '../broker.ts';
import type { Instant } from '../policy/facts.ts';
import { MIN_DAYS, PURGED, RETAINED_KINDS, Retention } from '../policy/retention.ts';
import { isOwnRetention } from '../retention-authenticity.ts';
import { pause } from '../runtime/waits.ts';
import { type AuditRow, findAuditRow } from '../store/audit.ts';
import { deleteRowsOf, findPurge, listRetentions, moveAnnounced, moveDeleted } from '../store/audit-purges.ts';
import { pushedTo } from '../store/audit-sinks.ts';
import { purgeFormerOwners } from '../store/former-owners.ts';
import { isHeld } from '../store/log-holds.ts';
import { findReceiptLog } from '../store/receipt-logs.ts';
import { readStored } from '../store/stored-json.ts';
import type { AuditPurgeTable } from '../store/tables/receipt-log.ts';
import { RolledBack, rollback } from '../store/transaction.ts';
import { findIndex } from './find-place.ts';
import { type Aged, bitsByTile, oldPlacesFrom, oldRowsOf, placesFrom } from './purged-places.ts';

const DAY_MS = 24 * 3600 * 1000;
/** Pause between two steps, so that calls are not delayed. */
const PAUSE_MS = 20;
/** Time limit of a round, since other background jobs wait for this one; the next round continues where this one ended. */
const ROUND_MS = 10_000;

/** `isAnnouncing`: rows announced before this round are deleted; rows announced in this round are deleted in the next one. */
type PendingPurge = Aged & { isAnnouncing: boolean };

type Purging = Changing & Uses<'storeClock' | 'vault'>;

/**
 * Creates the background job. A round continues after the kind and organisation with which the last one ended; otherwise the first ones would
 * use up every round. A failure for one organisation does not affect the others. `roundMs`: for tests.
 */
export function purgeJob(services: Purging, roundMs = ROUND_MS): (now: Instant) => Promise<void> {
  let last = '';
  return async (now) => {
    const until = performance.now() + roundMs;
    const { owed, failures } = await listOwed(services.broker, now);
    const next = Math.max(
      0,
      owed.findIndex((one) => placeOf(one) > last),
    );
    let isTimeUp = false;
    // Round robin, so that an organisation with much to delete does not delay the others.
    for (let turn = [...owed.slice(next), ...owed.slice(0, next)]; turn.length > 0 && !isTimeUp; ) {
      const more: PendingPurge[] = [];
      for (const one of turn) {
        last = placeOf(one);
        const left = await purgeStep(services, one).catch((error: unknown) => {
          failures.push(error);
          return undefined;
        });
        isTimeUp = performance.now() > until;
        if (isTimeUp) break;
        if (!left) continue;
        more.push(left);
        await pause(PAUSE_MS);
      }
      turn = more;
    }
    if (failures.length > 0) throw failures[0];
  };
}

const placeOf = ({ organisationId, kind }: PendingPurge): string => `${organisationId} ${kind}`;

/** Lists the expired kinds of all organisations, sorted. `failures`: errors of organisations whose retention was altered in the store. */
async function listOwed(
  { store, vault }: Pick<Broker, 'store' | 'vault'>,
  now: Instant,
): Promise<{ owed: PendingPurge[]; failures: unknown[] }> {
  const owed: PendingPurge[] = [];
  const failures: unknown[] = [];
  for (const one of await listRetentions(store.db)) {
    const { id, retention } = one;
    try {
      if (!isOwnRetention(vault, one))
        throw new Error(
          `The retention of organisation ${id} was not set by an admin, but in the database: nothing is deleted there until an admin sets it.`,
        );
      const kept = readStored(Retention, retention ?? 'null', `retention of organisation ${id}`);
      for (const kind of RETAINED_KINDS) {
        const days = kept[`${kind}_days`];
        if (days !== null)
          owed.push({ organisationId: id, kind, before: now - days * DAY_MS, now, isAnnouncing: false });
      }
    } catch (error) {
      failures.push(error);
    }
  }
  return { owed: owed.toSorted((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1)), failures };
}

/** Deletes some announced rows whose event a checkpoint covers; when all are deleted, announces more. Undefined: done for this round. */
async function purgeStep(services: Purging, owed: PendingPurge): Promise<PendingPurge | undefined> {
  const { organisationId, kind, isAnnouncing } = owed;
  const purge = await findPurge(services.broker.store.db, organisationId, kind);
  if (!isAnnouncing && purge.next_index < purge.announced_index) {
    const { event_id: id } = purge;
    const event = id === null ? null : await findAuditRow(services.broker.store.db, organisationId, id);
    if (!(await mayGo(services.broker, organisationId, event))) return undefined;
    return (await deleteAnnounced(services.broker, purge, owed, event)) ? owed : undefined;
  }
  return (await announce(services, purge, owed)) ? { ...owed, isAnnouncing: true } : undefined;
}

/**
 * Whether a checkpoint covers the event, and no export with an earlier checkpoint is running: that export would lack the proof that the rows
 * were deleted because their retention had expired.
 */
async function mayGo(
  broker: Pick<Broker, 'store' | 'storeClock'>,
  organisationId: string,
  event: AuditRow | null | undefined,
): Promise<boolean> {
  const { db } = broker.store;
  // No event: none of the rows up to here was of the kind.
  if (event === null) return true;
  const index = event && (await findIndex(broker, event));
  if (index === undefined) return false;
  const isCovered = index < ((await findReceiptLog(db, organisationId))?.checkpoint_size ?? 0);
  // In this order: an export that begins in between uses a checkpoint that covers the event.
  return isCovered && !(await isHeld(db, organisationId, index, broker.storeClock.now()));
}

async function deleteAnnounced(
  { store: { db } }: Pick<Broker, 'store'>,
  purge: AuditPurgeTable,
  owed: PendingPurge,
  event: AuditRow | null | undefined,
): Promise<boolean> {
  const { organisation_id, next_index: from, announced_index: end } = purge;
  const places = (await placesFrom(db, organisation_id, from)).filter(({ index }) => index < end);
  const last = places.at(-1);
  if (last === undefined) return false;
  const { old } = await oldRowsOf(db, owed, event ? places : [], announcedBefore(event, owed));
  return await db.transaction().execute(async (tx) => {
    if (!(await moveDeleted(tx, purge, last.index + 1))) return false;
    await deleteRowsOf(tx, organisation_id, [...old]);
    // Their removals are among the deleted rows, with the addresses.
    if (purge.kind === 'events') await purgeFormerOwners(tx, organisation_id, announcedBefore(event, owed));
    return true;
  });
}

/** Returns the cutoff time: announced rows are deleted even if the retention was extended since. */
function announcedBefore(event: AuditRow | null | undefined, { before, now }: PendingPurge): Instant {
  const announced = Date.parse(String(event ? shownFlags(event).change?.before : ''));
  const latest = Number.isNaN(announced) ? before : Math.max(before, announced);
  return Math.min(latest, now - MIN_DAYS * DAY_MS);
}

async function announce(services: Changing, purge: AuditPurgeTable, owed: PendingPurge): Promise<boolean> {
  const { db } = services.broker.store;
  const { organisation_id: organisationId, kind, announced_index: from } = purge;
  const pushed = (await pushedTo(db, organisationId)) ?? Number.POSITIVE_INFINITY;
  const places = (await oldPlacesFrom(db, owed, from)).filter(({ index }) => index < pushed);
  const last = places.at(-1);
  if (last === undefined) return false;
  const to = last.index + 1;
  const { old, left } = await oldRowsOf(db, owed, places, owed.before);
  if (left > 0)
    services.broker.log.error(
      { security: true, organisation: organisationId, rows: left },
      'rows of the audit were changed after they were recorded, and are not deleted although their retention seems to have ended',
    );
  if (old.size === 0) return await moveAnnounced(db, purge, { to, eventId: null });
  const by = byBroker(organisationId);
  const announced = await recordChange(services, by, { reason: PURGED }, async (tx, note, eventId) => {
    if (!(await moveAnnounced(tx, purge, { to, eventId }))) return rollback('another process purges');
    note({
      kind,
      before: new Date(owed.before).toISOString(),
      rows: old.size,
      purged: bitsByTile(places.filter(({ id }) => old.has(id)).map(({ index }) => index)),
    });
    return true;
  });
  return !(announced instanceof RolledBack);
}
