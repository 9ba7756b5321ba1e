/** What a restore ends: everything pending or usable once, because it may have been decided or used since the backup. */
import type { StoreRestored } from '../policy/store-restored.ts';
import { retireLogKeys } from './log-keys.ts';
import { markRestoredCounters } from './passkeys.ts';
import { putKeysRestored } from './restored.ts';
import type { Db } from './store.ts';

type Ended = StoreRestored['ended'];

/**
 * Ends pending and one-time items in all organisations, and marks each organisation for review. `now`: by the store's clock, in
 * milliseconds; `madeAt`: when the backup was made; `nothingSince`: no call was made after the backup.
 */
export async function endPendingItems(
  tx: Db,
  { now, madeAt, nothingSince }: { now: number; madeAt: number | null; nothingSince: boolean },
): Promise<void> {
  const ended = await countWaiting(tx, now);
  await endPending(tx, now);
  await endOneTime(tx, now);
  await forgetRepeats(tx);
  if (!nothingSince) await putKeysRestored(tx, now);
  await endSessions(tx, now);
  await markRestoredCounters(tx);
  await endNotices(tx);
  for (const { id } of await tx.selectFrom('organisations').select('id').execute()) {
    const restored: StoreRestored = { at: now, madeAt, ended: ended(id), noted: false };
    await tx
      .updateTable('organisations')
      .set({ restored: JSON.stringify(restored) })
      .where('id', '=', id)
      .execute();
  }
}

/** Counts pending items per organisation. */
async function countWaiting(tx: Db, now: number): Promise<(organisationId: string) => Ended> {
  const pending = (table: 'approvals' | 'access_requests' | 'registrations' | 'person_consents') =>
    tx
      .selectFrom(table)
      .select((eb) => ['organisation_id', eb.fn.countAll().as('count')])
      .where('status', '=', 'pending')
      .where('expires_at', '>', now)
      .groupBy('organisation_id')
      .execute();
  const [approvals, requests, registrations, consents] = [
    await pending('approvals'),
    await pending('access_requests'),
    await pending('registrations'),
    await pending('person_consents'),
  ];
  const invites = await tx
    .selectFrom('invites')
    .select((eb) => ['organisation_id', eb.fn.countAll().as('count')])
    .where('claimed_at', 'is', null)
    .where('expires_at', '>', now)
    .groupBy('organisation_id')
    .execute();
  const standing = await tx
    .selectFrom('standing_approvals')
    .select((eb) => ['organisation_id', eb.fn.countAll().as('count')])
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .groupBy('organisation_id')
    .execute();
  return (id) => {
    const of = (rows: readonly { organisation_id: string | null; count: unknown }[]) =>
      Number(rows.find((row) => row.organisation_id === id)?.count ?? 0);
    return {
      approvals: of(approvals),
      access_requests: of(requests),
      registrations: of(registrations),
      consents: of(consents),
      invites: of(invites),
      standing_approvals: of(standing),
    };
  };
}

/** Expires what waits for a decision. */
async function endPending(tx: Db, now: number): Promise<void> {
  const over = { status: 'expired' as const };
  // Includes approved calls whose replay was not begun: recovery records them as expired.
  await tx
    .updateTable('approvals')
    .set({ expires_at: now })
    .where('expires_at', '>', now)
    .where((eb) => eb.or([eb('status', '=', 'pending'), eb('exec_state', '=', 'claimed')]))
    .execute();
  await tx.updateTable('approvals').set(over).where('status', '=', 'pending').execute();
  for (const table of ['access_requests', 'registrations'] as const) {
    await tx
      .updateTable(table)
      .set({ expires_at: now })
      .where('status', '=', 'pending')
      .where('expires_at', '>', now)
      .execute();
    await tx.updateTable(table).set(over).where('status', '=', 'pending').execute();
  }
  await tx
    .updateTable('person_consents')
    .set({ expires_at: now })
    .where('status', '=', 'pending')
    .where('expires_at', '>', now)
    .execute();
  // The person has not accepted these tokens yet.
  await tx.deleteFrom('person_tokens').where('standing', '=', 'obtained').execute();
  // How often they were used since the backup is unknown.
  await tx
    .updateTable('standing_approvals')
    .set({ expires_at: now })
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .execute();
}

/** Ends one-time items: links, tokens, invites, private keys that were not collected, and OAuth flows in progress. */
async function endOneTime(tx: Db, now: number): Promise<void> {
  for (const table of ['one_time_tokens', 'secret_authorizations'] as const)
    await tx
      .updateTable(table)
      .set({ expires_at: now })
      .where('used_at', 'is', null)
      .where('expires_at', '>', now)
      .execute();
  await tx
    .updateTable('invites')
    .set({ expires_at: now })
    .where('claimed_at', 'is', null)
    .where('expires_at', '>', now)
    .execute();
  await tx
    .updateTable('registrations')
    .set({ private_key: null, claim_until: now })
    .where('claimed_at', 'is', null)
    .where('claim_until', '>', now)
    .execute();
  await tx.deleteFrom('oauth_flows').execute();
}

/** Deletes the data that deduplicates retries: it lacks calls since the backup, so its answers would be wrong. */
async function forgetRepeats(tx: Db): Promise<void> {
  for (const table of ['idempotency_keys', 'stored_responses', 'held_joins', 'mcp_repeats'] as const)
    await tx.deleteFrom(table).execute();
}

/**
 * Deletes queued notices, including those about what ended here. Messages sent before the backup stay unchanged: what they are about was
 * decided since, or is still pending on the machine of which this is a copy.
 */
async function endNotices(tx: Db): Promise<void> {
  await tx.deleteFrom('notices').execute();
  await tx.updateTable('notice_deliveries').set({ state: 'over' }).where('state', '=', 'due').execute();
}

/** Ends sessions and tokens of MCP clients, some of which were ended since the backup. The next start makes a new session key. */
async function endSessions(tx: Db, now: number): Promise<void> {
  await tx.deleteFrom('signing_keys').where('use', '=', 'session').execute();
  await tx.deleteFrom('person_sessions').execute();
  await tx.deleteFrom('oauth_records').where('kind', '<>', 'Client').execute();
  // Access tokens are not stored: they are valid while their authorisation is.
  await tx
    .updateTable('mcp_authorisations')
    .set({ expires_at: now })
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .execute();
  // No process in the backup is alive: its calls in flight are closed as unknown. Passkey challenges belong to an earlier run, too.
  await tx.deleteFrom('instances').execute();
  await tx.deleteFrom('meta').where('name', '=', 'run').execute();
  // Trees signed since the backup stay signed: a key must never sign two trees of which neither extends the other.
  await retireLogKeys(tx, undefined, now);
}
