/** Creates deliveries of notices, one for each channel that subscribes to the event, in the transaction that takes the notices out of the outbox. */
import { ROLE_RETENTION_MS } from '../auth/roles-by-groups.ts';
import type { Broker } from '../broker.ts';
import type { ChannelRules } from '../config-file/channels.ts';
import { channelRules } from '../config-file/stored-settings.ts';
import { uuidv4 } from '../crypto/ids.ts';
import type { Instant } from '../policy/facts.ts';
import { compilePattern } from '../policy/pattern.ts';
import { renewLease } from '../store/leases.ts';
import { dropDue, listSent, putDeliveries, wasNoticeCreatedSince } from '../store/notice-deliveries.ts';
import { deleteNotices, findAgentsOf, listChannelsOf, listNotices } from '../store/notice-outbox.ts';
import type { Db } from '../store/store.ts';
import type {
  NoticeChannelTable,
  NoticeDeliveryTable,
  NoticeEvent,
  NoticeTable,
  SettledEvent,
} from '../store/tables/notices.ts';
import { kindOf } from './kinds.ts';
import { quietUntil } from './quiet.ts';
import { readSubject, type Subject } from './subject.ts';

/** Notices per transaction. Kept small, because calls wait for the transaction where the store has one writer. */
const BATCH_SIZE = 100;

/**
 * Notices about the same broken connection are sent at most this often: if one endpoint refuses the credential while others accept it, the
 * connection's state changes with each call.
 */
const REPEAT_AFTER_MS = 3_600_000;

/** The event that each of these settles. */
const SETTLES: Readonly<Record<SettledEvent, NoticeEvent>> = {
  call_settled: 'call_held',
  access_settled: 'access_requested',
  registration_settled: 'registration_waiting',
  agent_settled: 'agent_suspended',
  connection_settled: 'connection_broken',
};

/** Events whose subject can become pending again after it was settled. */
const MAY_COME_AGAIN: ReadonlySet<NoticeEvent> = new Set(['agent_suspended', 'connection_broken']);

/** `lost`: another process holds the lease. `more`: there may be more notices. */
export type FannedOut = 'lost' | 'more' | 'done';

/** Takes up to 100 notices out of the outbox, while this process holds the lease with this fencing token. */
export async function fanOut(
  broker: Pick<Broker, 'clock' | 'log' | 'store' | 'vault'>,
  lease: { name: string; fence: number },
): Promise<FannedOut> {
  const { db } = broker.store;
  if ((await listNotices(db, 1)).length === 0) return 'done';
  return await db.transaction().execute(async (tx) => {
    if (!(await renewLease(tx, lease))) return 'lost';
    const notices = await listNotices(tx, BATCH_SIZE);
    const organisations = [...new Set(notices.map((one) => one.organisation_id))];
    // A former member of the organisation, who cannot sign in any more, may still have the phone.
    const since = broker.clock() - ROLE_RETENTION_MS;
    const channels = readChannels(broker, await listChannelsOf(tx, organisations, since));
    const agents = await findAgentsOf(tx, notices);
    let made: NoticeDeliveryTable[] = [];
    for (const notice of notices) {
      if (notice.event === 'call_replayed' || notice.event === 'call_changed' || isSettled(notice)) {
        // A settling notice has to apply to deliveries made earlier in this transaction too.
        await putDeliveries(tx, made);
        made = [];
        if (isSettled(notice)) await settle(broker, tx, notice, SETTLES[notice.event]);
        else if (notice.event === 'call_changed') await update(broker, tx, notice);
        else await correctOutcomes(broker, tx, notice);
        continue;
      }
      const own = channels.filter(({ channel }) => channel.organisation_id === notice.organisation_id);
      made.push(...(await deliveriesOf(broker, tx, notice as Opening, own, agents.get(notice.agent_id ?? '') ?? [])));
    }
    await putDeliveries(tx, made);
    await deleteNotices(tx, notices);
    return notices.length === BATCH_SIZE ? 'more' : 'done';
  });
}

type Opening = NoticeTable & { event: NoticeEvent };
type Settled = NoticeTable & { event: SettledEvent };

const isSettled = (notice: NoticeTable): notice is Settled => Object.hasOwn(SETTLES, notice.event);

type ReadChannel = { channel: NoticeChannelTable; rules: ChannelRules };

/** Channels whose rules cannot be read, as a newer release may have written them, are skipped, so that they delay no other channel. */
function readChannels({ log }: Pick<Broker, 'log'>, channels: readonly NoticeChannelTable[]): ReadChannel[] {
  return channels.flatMap((channel) => {
    try {
      return [{ channel, rules: channelRules(channel) }];
    } catch (error) {
      log.error({ err: error, channel: channel.id }, 'no notices are sent on a channel: its rules cannot be read');
      return [];
    }
  });
}

/**
 * Returns the deliveries of a notice. Whether the notice is still relevant is checked when it is sent; the subject is read here only where it decides
 * about deliveries.
 */
async function deliveriesOf(
  broker: Pick<Broker, 'clock' | 'log' | 'vault'>,
  tx: Db,
  notice: Opening,
  channels: readonly ReadChannel[],
  names: readonly (string | null)[],
): Promise<NoticeDeliveryTable[]> {
  const now = broker.clock();
  if (notice.event === 'connection_broken' && (await wasNoticeCreatedSince(tx, notice, now - REPEAT_AFTER_MS)))
    return [];
  const made: NoticeDeliveryTable[] = [];
  let subject = notice.event === 'passkey_added' ? await readSubject(broker, tx, notice) : undefined;
  for (const { channel, rules } of channels) {
    if (!wants(rules, notice, names)) continue;
    if (subject?.ofOwner !== undefined && channel.owner_id !== null && channel.owner_id !== subject.ofOwner) continue;
    made.push(delivery(notice, channel.id, 'first', quietUntil(rules.quiet, now) ?? now, now));
    if (rules.remind_minutes === undefined) continue;
    subject ??= await readSubject(broker, tx, notice);
    const remindAt = subject && reminderAt(rules, subject, now);
    if (remindAt !== undefined) made.push(delivery(notice, channel.id, 'reminder', remindAt, now));
  }
  return made;
}

const matches = (patterns: readonly string[] | undefined, texts: readonly (string | null)[]): boolean =>
  patterns === undefined ||
  patterns.some((pattern) => {
    const { matches: fits } = compilePattern(pattern, 'text');
    return texts.some((text) => text !== null && fits(text));
  });

/** `names`: of the agent and its parent, because an agent chooses the names of its children. */
const wants = (
  { events, agents, platforms }: ChannelRules,
  notice: Opening,
  names: readonly (string | null)[],
): boolean =>
  (events === undefined || events.includes(notice.event)) &&
  matches(agents, names) &&
  matches(platforms, [notice.platform_id]);

/** Returns when the reminder is due: only for subjects that expire, and only if the reminder is later than the first message. */
function reminderAt({ remind_minutes, quiet }: ChannelRules, { until }: Subject, now: Instant): Instant | undefined {
  if (remind_minutes === undefined || until === undefined) return undefined;
  const at = until - remind_minutes * 60_000;
  const sent = Math.max(at, quietUntil(quiet, at) ?? at);
  return at > now && sent < until ? sent : undefined;
}

const delivery = (
  {
    organisation_id,
    id,
    event,
    subject_id,
  }: Pick<NoticeDeliveryTable, 'organisation_id' | 'id' | 'event' | 'subject_id'>,
  channelId: string,
  step: NoticeDeliveryTable['step'],
  due_at: Instant,
  now: Instant,
): NoticeDeliveryTable => ({
  organisation_id,
  id: uuidv4(),
  channel_id: channelId,
  notice_id: id,
  event,
  subject_id,
  step,
  due_at,
  attempts: 0,
  state: 'due',
  external_ref: null,
  last_error: null,
  created_at: now,
});

/** Drops deliveries that were not sent yet, and creates outcomes for the messages that were. */
async function settle(
  broker: Pick<Broker, 'clock' | 'log' | 'vault'>,
  tx: Db,
  { organisation_id, subject_id }: Settled,
  event: NoticeEvent,
): Promise<void> {
  const subject = { organisation_id, event, subject_id };
  // Two changes within one millisecond may arrive in any order: the subject's current state shows which was the last.
  if (MAY_COME_AGAIN.has(event) && (await readSubject(broker, tx, subject))?.waits) return;
  await dropDue(tx, subject);
  await putDeliveries(tx, outcomesOf(await listSent(tx, subject), broker.clock()));
}

/** Creates an update for each channel on which a message about the call was sent. One that was not sent yet shows the current state anyway. */
async function update(broker: Pick<Broker, 'clock'>, tx: Db, { organisation_id, id, subject_id }: NoticeTable) {
  const sent = await listSent(tx, { organisation_id, event: 'call_held', subject_id });
  // Of two updates that are sent concurrently the earlier one could be the last to arrive.
  await dropDue(tx, { organisation_id, event: 'call_changed', subject_id });
  const channels = [...new Set(sent.map(({ channel_id }) => channel_id))];
  const about = { organisation_id, id, subject_id };
  await putDeliveries(
    tx,
    channels.map((channelId) => updateOf(about, channelId, broker.clock())),
  );
}

/** Returns a delivery that updates the messages about a held call on one channel. `id`: of the notice. */
export const updateOf = (
  about: { organisation_id: string; id: string; subject_id: string },
  channelId: string,
  now: Instant,
): NoticeDeliveryTable => delivery({ ...about, event: 'call_changed' }, channelId, 'first', now, now);

/** Sends the outcomes of an approved call again if it was not made, or failed: those that were sent before say only that it was approved. */
async function correctOutcomes(
  broker: Pick<Broker, 'clock' | 'log' | 'vault'>,
  tx: Db,
  { organisation_id, subject_id, created_at }: NoticeTable,
): Promise<void> {
  const subject = { organisation_id, event: 'call_held' as const, subject_id };
  if (!(await readSubject(broker, tx, subject))?.hasFailed) return;
  await putDeliveries(tx, outcomesOf(await listSent(tx, subject), broker.clock()), created_at);
}

/** Returns the outcome deliveries for messages that were sent: one for each notice and each channel that can edit. */
export function outcomesOf(
  sent: readonly (NoticeDeliveryTable & { kind: string })[],
  now: Instant,
): NoticeDeliveryTable[] {
  return sent
    .filter(({ kind }) => kindOf(kind)?.edit !== undefined)
    .map((one) => delivery({ ...one, id: one.notice_id }, one.channel_id, 'outcome', now, now))
    .filter(
      (one, at, all) =>
        all.findIndex((other) => other.channel_id === one.channel_id && other.notice_id === one.notice_id) === at,
    );
}
