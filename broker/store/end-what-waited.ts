/** What a restore ends: all that was pending or good for once, because it may have been decided or used since the backup. */
import type { StoreRestored } from '../policy/store-restored.ts';
import { retireLogKeys } from './log-keys.ts';
import { markRestoredCounters } from './passkeys.ts';
import { putKeysRestored } from './restored.ts';
import type { Db } from './store.ts';

type Ended = StoreRestored['ended'];

/**
 * Ends it in all organisations, and makes each of them wait for a review. `now`: by the store's clock, in milliseconds; `madeAt`: when the
 * backup was made; `nothingSince`: no call was made after it.
 */
export async function endWhatWaited(
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

/** What waits in each organisation. */
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

/** What waits for a decision. */
async function endPending(tx: Db, now: number): Promise<void> {
  const over = { status: 'expired' as const };
  // Approved ones that were not made yet, too: recovery records that they are not made any more.
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
  // Nobody has said yet that they are to be kept.
  await tx.deleteFrom('person_tokens').where('standing', '=', 'obtained').execute();
  // Uses of them since the backup are not known.
  await tx
    .updateTable('standing_approvals')
    .set({ expires_at: now })
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .execute();
}

/** What may be used once: links, tokens, invites, keys that nobody has collected, flows on their way. */
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

/** What makes a repetition the same call: of calls since the backup it knows nothing, and so it would be wrong. */
async function forgetRepeats(tx: Db): Promise<void> {
  for (const table of ['idempotency_keys', 'stored_responses', 'held_joins', 'mcp_repeats'] as const)
    await tx.deleteFrom(table).execute();
}

/**
 * What is still to be told, also of what ended here. The messages that were sent before the backup stay as they are: what they tell of was
 * decided since, or still waits on the machine of which this is a copy.
 */
async function endNotices(tx: Db): Promise<void> {
  await tx.deleteFrom('notices').execute();
  await tx.updateTable('notice_deliveries').set({ state: 'over' }).where('state', '=', 'due').execute();
}

/** Sessions and what renews them, some of which were ended since the backup. The start makes a new session key. */
async function endSessions(tx: Db, now: number): Promise<void> {
  await tx.deleteFrom('signing_keys').where('use', '=', 'session').execute();
  await tx.deleteFrom('person_sessions').execute();
  await tx.deleteFrom('oauth_records').where('kind', '<>', 'Client').execute();
  // No process of then lives: its calls in flight are closed as unknown, and passkey challenges are of another run.
  await tx.deleteFrom('instances').execute();
  await tx.deleteFrom('meta').where('name', '=', 'run').execute();
  // What was signed since the backup stays signed: no key signs two trees of which neither is the beginning of the other.
  await retireLogKeys(tx, undefined, now);
}
