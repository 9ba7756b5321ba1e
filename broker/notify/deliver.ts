/** Sends one delivery and stores the result. */
import { isDeepStrictEqual } from 'node:util';
import type { Broker } from '../broker.ts';
import { channelRules, channelSettings } from '../config-file/stored-settings.ts';
import { SealError } from '../crypto/seal.ts';
import { Secret } from '../crypto/secret.ts';
import { pushKey } from '../push-key.ts';
import { withTimeout } from '../runtime/waits.ts';
import { noteFailing, noteWorking, WRITE_INTERVAL_MS } from '../store/notice-channels.ts';
import { beginDelivery, isUpdateExpected, listSent, markDelivery, putDeliveries } from '../store/notice-deliveries.ts';
import type { Db } from '../store/store.ts';
import type { NoticeChannelTable, NoticeDeliveryTable } from '../store/tables/notices.ts';
import { buttonsFor } from './buttons.ts';
import type { ChannelKind, Sending, Sent } from './channel.ts';
import { isUpdate, messageOf } from './compose.ts';
import { outcomesOf, updateOf } from './fan-out.ts';
import { kindOf } from './kinds.ts';
import type { Message } from './message.ts';
import { quietUntil } from './quiet.ts';
import { readSubject, type Subject } from './subject.ts';

/** Upper bound of a send. Channels have shorter time limits of their own; this one applies if a channel lacks them. */
const MAX_DURATION_MS = 30_000;
/** Notices older than this are dropped instead of sent. */
const MAX_AGE_MS = 3 * 24 * 3600 * 1000;
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 300_000;

/** `pauseMs`: how long nothing is sent on the channel after a failure. `ms`: how long the delivery took. */
export type Delivered = { failed: false; ms: number } | { failed: true; pauseMs: number };

/** Returns the milliseconds before attempt number `attempts` + 1: exponential backoff with jitter. */
export const backoffMs = (attempts: number): number =>
  Math.min(FIRST_PAUSE_MS * 2 ** Math.min(attempts - 1, 16), MAX_PAUSE_MS) * (0.75 + Math.random() / 2);

/**
 * Whether an update is not sent. A kind that cannot edit sends another message instead, and only one for a call that several people approve: when the
 * approval of one more is needed.
 */
const isNeedlessUpdate = (kind: ChannelKind, { approvers }: Subject): boolean =>
  kind.edit === undefined && approvers?.approved.length !== (approvers?.needed ?? 0) - 1;

/** Whether everybody whom the channel reaches has approved the call already. */
const hasApproved = (channel: NoticeChannelTable, kind: ChannelKind, subject: Subject, message: Message): boolean =>
  subject.approvers?.approved.some(({ id }) => id === channel.owner_id) === true ||
  kind.concerns?.({ settings: channelSettings(channel) }, message) === false;

/** Returns the context in which a channel sends. Throws SealError when the channel's secret was altered in the store. */
export function sendingOn(
  broker: Pick<Broker, 'config' | 'baseUrl' | 'clock' | 'store' | 'vault' | 'outbound' | 'publicOutbound'>,
  channel: NoticeChannelTable,
): Sending {
  const { organisation_id: organisationId, id, kind, settings, secret } = channel;
  const place = { table: 'notice_channels', organisationId, rowId: id } as const;
  return {
    channelId: id,
    settings: channelSettings({ id, kind, settings }),
    secret: secret === null ? undefined : new Secret(broker.vault.open(place, secret).toString('utf8')),
    outbound: broker.outbound,
    push: { outbound: broker.publicOutbound, key: () => pushKey(broker) },
    now: broker.clock(),
  };
}

/** Runs an operation of a channel kind with a timeout, and returns a failure instead of throwing. */
export async function attempt(broker: Pick<Broker, 'log'>, work: () => Promise<Sent>): Promise<Sent> {
  try {
    const late: Sent = { kind: 'failed', why: 'It did not answer in time.' };
    return (await withTimeout(work(), MAX_DURATION_MS, late)) ?? late;
  } catch (error) {
    broker.log.error({ err: error, security: error instanceof SealError }, 'sending on a channel failed unexpectedly');
    return { kind: 'failed', why: 'The message could not be sent: see the log of the broker.' };
  }
}

/**
 * Sends the delivery, if it is still relevant. A failure is not counted when `isOn` has become false: this process stops, or another one sends.
 * Errors of the store are thrown: the delivery is then sent again, with the same id.
 */
export async function deliver(
  broker: Pick<Broker, 'config' | 'baseUrl' | 'clock' | 'log' | 'store' | 'vault' | 'outbound' | 'publicOutbound'>,
  channel: NoticeChannelTable,
  delivery: NoticeDeliveryTable,
  isOn: () => boolean,
): Promise<Delivered> {
  const { db } = broker.store;
  const began = performance.now();
  const done = async (mark: Parameters<typeof markDelivery>[2]): Promise<Delivered> => {
    await markDelivery(db, delivery, mark);
    return { failed: false, ms: performance.now() - began };
  };
  const kind = kindOf(channel.kind);
  const now = broker.clock();
  const subject = await readSubject(broker, db, delivery);
  const isOutcome = delivery.step === 'outcome';
  if (!subject || !kind || channel.status === 'gone' || (subject.waits && isOutcome))
    return await done({ state: 'over' });
  const seen = { said: subject, readAt: now };
  if (!subject.waits && !isOutcome) {
    if (!mayHaveArrived(delivery)) return await done({ state: 'over' });
    await finishSent(broker, delivery, {}, seen);
    return { failed: false, ms: performance.now() - began };
  }
  // A reminder may be due later than that; it ends with its subject.
  const isOld = now - delivery.created_at > MAX_AGE_MS && delivery.step !== 'reminder';
  if (isOld && delivery.attempts > 0) return await done({ state: 'gave_up' });
  if (isUpdate(delivery) && isNeedlessUpdate(kind, subject)) return await done({ state: 'over' });
  const message = messageOf(broker, delivery, subject);
  if (!isOutcome && hasApproved(channel, kind, subject, message)) return await done({ state: 'over' });
  const isEdit = isOutcome || (isUpdate(delivery) && kind.edit !== undefined);
  const quietEnd = isEdit ? undefined : quietUntil(channelRules(channel).quiet, now);
  if (quietEnd !== undefined) return await done({ due_at: quietEnd });
  // Only messages that are edited later need to be known as possibly sent.
  if (delivery.step !== 'outcome' && kind.edit && !(await beginDelivery(db, delivery)))
    return { failed: false, ms: performance.now() - began };
  const sent = await attempt(broker, () => say(broker, kind, channel, delivery, { message, subject }));
  if (sent.kind === 'sent') {
    await finishSent(broker, delivery, sent, seen);
    if (sent.lacking !== undefined) await noteFailing(db, channel, 'active', sent.lacking);
    else if (!isKnownToWork(channel, now)) await noteWorking(db, channel, now);
    return { failed: false, ms: performance.now() - began };
  }
  if (sent.kind === 'failed' && !isOn()) return { failed: true, pauseMs: 0 };
  const unchanged = await noteFailing(db, channel, sent.kind === 'gone' ? 'gone' : 'failing', sent.why);
  const attempts = delivery.attempts + 1;
  const pauseMs = Math.max(backoffMs(attempts), sent.kind === 'failed' ? (sent.afterMs ?? 0) : 0);
  const again = { attempts, due_at: Math.round(broker.clock() + pauseMs) };
  const isLost = sent.kind === 'gone' && unchanged;
  await markDelivery(db, delivery, { ...(isLost ? { state: 'gave_up' } : again), last_error: sent.why });
  return { failed: true, pauseMs };
}

/** Avoids a second write per message while the channel keeps working. */
const isKnownToWork = ({ status, last_error, last_ok_at }: NoticeChannelTable, now: number): boolean =>
  status === 'active' && last_error === null && last_ok_at !== null && now - last_ok_at < WRITE_INTERVAL_MS;

const withButtons = (message: Message, buttons: Message['buttons']): Message =>
  buttons ? { ...message, buttons } : message;

async function say(
  broker: Pick<Broker, 'config' | 'baseUrl' | 'clock' | 'store' | 'vault' | 'outbound' | 'publicOutbound'>,
  kind: ChannelKind,
  channel: NoticeChannelTable,
  delivery: NoticeDeliveryTable,
  { message, subject }: { message: Message; subject: Subject },
): Promise<Sent> {
  const sending = sendingOn(broker, channel);
  if (isUpdate(delivery) && kind.edit)
    return await updateSent(broker, kind.edit, channel, delivery, subject, { sending, message });
  if (delivery.step !== 'outcome')
    return await kind.send(sending, withButtons(message, await buttonsFor(broker, channel, delivery, sending)));
  const messages = await listSent(broker.store.db, delivery, delivery);
  const refs = messages.map(({ external_ref }) => external_ref ?? '');
  return kind.edit ? await kind.edit(sending, message, refs) : { kind: 'sent' };
}

/** Writes an update into each message about a held call that was sent on the channel. */
async function updateSent(
  broker: Pick<Broker, 'store' | 'vault'>,
  edit: NonNullable<ChannelKind['edit']>,
  channel: NoticeChannelTable,
  { organisation_id, subject_id }: NoticeDeliveryTable,
  { correctedAt }: Subject,
  { sending, message }: { sending: Sending; message: Message },
): Promise<Sent> {
  const held = { organisation_id, event: 'call_held', subject_id } as const;
  const messages = await listSent(broker.store.db, held, { channel_id: channel.id });
  // A kind without refs gets one update.
  const byRef = new Map(messages.map((one) => [one.external_ref ?? '', one]));
  for (const [ref, one] of byRef) {
    // Whoever is about to press a button has read the request as it was: after a correction the message only links to the page.
    const isOutdated = correctedAt !== undefined && one.created_at <= correctedAt;
    const buttons = isOutdated ? undefined : await buttonsFor(broker, channel, one, sending);
    const sent = await edit(sending, withButtons(message, buttons), [ref]);
    if (sent.kind !== 'sent') return sent;
  }
  return { kind: 'sent' };
}

/** Whether an earlier attempt, whose result is not known because the process ended, may have shown the message. */
const mayHaveArrived = (delivery: NoticeDeliveryTable): boolean =>
  delivery.attempts > 0 && delivery.last_error === null && !isUpdate(delivery);

/** The subject as a message shows it, and when it was read: at that time no sent message was listed yet. */
type Seen = { said: Subject; readAt: number };

/**
 * Marks a delivery as sent, and creates what has to follow it in the same transaction: a process that ends in between would leave a message that shows
 * a decided call as waiting.
 */
async function finishSent(
  broker: Pick<Broker, 'clock' | 'log' | 'store' | 'vault'>,
  delivery: NoticeDeliveryTable,
  { ref }: { ref?: string },
  seen: Seen,
): Promise<void> {
  await broker.store.db.transaction().execute(async (tx) => {
    await markDelivery(tx, delivery, { state: 'sent', external_ref: ref ?? null, last_error: null });
    if (delivery.step !== 'outcome' && !isUpdate(delivery)) await writeBack(broker, tx, delivery, seen);
  });
}

/** Creates the outcomes for a call that was decided while its message was in flight, and an update for one that has changed since. */
async function writeBack(
  broker: Pick<Broker, 'clock' | 'log' | 'vault'>,
  db: Db,
  delivery: NoticeDeliveryTable,
  { said, readAt }: Seen,
): Promise<void> {
  const subject = await readSubject(broker, db, delivery);
  const now = broker.clock();
  if (!subject?.waits) {
    await putDeliveries(db, outcomesOf(await listSent(db, delivery, delivery), now));
    return;
  }
  if (delivery.event !== 'call_held' || isDeepStrictEqual(subject, said)) return;
  if (!(await isUpdateExpected(db, delivery, readAt)))
    await putDeliveries(db, [updateOf(delivery, delivery.channel_id, now)]);
}
