/** Sends one delivery and stores the result. */
import type { Broker } from '../broker.ts';
import { channelRules, channelSettings } from '../config-file/stored-settings.ts';
import { SealError } from '../crypto/seal.ts';
import { Secret } from '../crypto/secret.ts';
import { pushKey } from '../push-key.ts';
import { withTimeout } from '../runtime/waits.ts';
import { noteFailing, noteWorking, OK_EVERY_MS } from '../store/notice-channels.ts';
import { listSent, markDelivery, putDeliveries } from '../store/notice-deliveries.ts';
import type { NoticeChannelTable, NoticeDeliveryTable, NoticeEvent } from '../store/tables/notices.ts';
import { buttonsFor } from './buttons.ts';
import type { ChannelKind, Sending, Sent } from './channel.ts';
import { outcomesOf } from './fan-out.ts';
import { kindOf } from './kinds.ts';
import { type Message, readable } from './message.ts';
import { quietUntil } from './quiet.ts';
import { readSubject, type Subject } from './subject.ts';

/** Upper bound of a send. Channels have shorter time limits of their own; this one applies if a channel lacks them. */
const LONGEST_MS = 30_000;
/** Notices older than this are dropped instead of sent. */
const GIVE_UP_MS = 3 * 24 * 3600 * 1000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 300_000;

/** `pauseMs`: how long nothing is sent on the channel after a failure. `ms`: how long the delivery took. */
export type Delivered = { failed: false; ms: number } | { failed: true; pauseMs: number };

/** Returns the milliseconds before attempt number `attempts` + 1: exponential backoff with jitter. */
export const backoffMs = (attempts: number): number =>
  Math.min(FIRST_PAUSE_MS * 2 ** Math.min(attempts - 1, 16), LONGEST_PAUSE_MS) * (0.75 + Math.random() / 2);

const TITLES: Readonly<Record<NoticeEvent, string>> = {
  call_held: 'Approval needed',
  access_requested: 'Access requested',
  registration_waiting: 'An agent wants to register',
  agent_suspended: 'Agent suspended',
  connection_broken: 'Connection needs attention',
  passkey_added: 'Passkey added',
};

/** Builds the message of a delivery. */
function messageOf({ baseUrl }: Pick<Broker, 'baseUrl'>, delivery: NoticeDeliveryTable, subject: Subject): Message {
  const { id, event, step, subject_id } = delivery;
  const people = subject.approvers === undefined ? '' : ` from ${subject.approvers} people`;
  const title = `${TITLES[event]}${people}`;
  return {
    id,
    event,
    step,
    subjectId: subject_id,
    title: step === 'reminder' ? `${title} (reminder)` : title,
    sentence: subject.sentence,
    agent: subject.agent && readable(subject.agent.name),
    ...(subject.agent?.parent != null && { parent: readable(subject.agent.parent) }),
    platform: subject.platform && { id: subject.platform.id, name: readable(subject.platform.name) },
    until: subject.until,
    link: `${baseUrl}${subject.path}`,
    outcome: step === 'outcome' ? (subject.outcome ?? 'Over') : undefined,
  };
}

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
    return (await withTimeout(work(), LONGEST_MS, late)) ?? late;
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
  if (!subject || !kind || channel.status === 'gone' || (subject.waits && isOutcome) || (!subject.waits && !isOutcome))
    return await done({ state: 'over' });
  // A reminder may be due later than that; it ends with its subject.
  const isOld = now - delivery.created_at > GIVE_UP_MS && delivery.step !== 'reminder';
  if (isOld && delivery.attempts > 0) return await done({ state: 'gave_up' });
  const quietEnd = isOutcome ? undefined : quietUntil(channelRules(channel).quiet, now);
  if (quietEnd !== undefined) return await done({ due_at: quietEnd });
  const message = messageOf(broker, delivery, subject);
  const sent = await attempt(broker, () => say(broker, kind, channel, delivery, message));
  if (sent.kind === 'sent') {
    await markDelivery(db, delivery, { state: 'sent', external_ref: sent.ref ?? null, last_error: null });
    if (sent.lacking !== undefined) await noteFailing(db, channel, 'active', sent.lacking);
    else if (!isKnownToWork(channel, now)) await noteWorking(db, channel, now);
    if (!isOutcome && kind.edit) await writeBack(broker, delivery);
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
  status === 'active' && last_error === null && last_ok_at !== null && now - last_ok_at < OK_EVERY_MS;

async function say(
  broker: Pick<Broker, 'config' | 'baseUrl' | 'clock' | 'store' | 'vault' | 'outbound' | 'publicOutbound'>,
  kind: ChannelKind,
  channel: NoticeChannelTable,
  delivery: NoticeDeliveryTable,
  message: Message,
): Promise<Sent> {
  const sending = sendingOn(broker, channel);
  if (delivery.step !== 'outcome') {
    const buttons = await buttonsFor(broker, channel, delivery, sending);
    return await kind.send(sending, buttons ? { ...message, buttons } : message);
  }
  const messages = await listSent(broker.store.db, delivery, delivery);
  const refs = messages.map(({ external_ref }) => external_ref ?? '');
  return kind.edit ? await kind.edit(sending, message, refs) : { kind: 'sent' };
}

/** Creates the outcomes for a call that was decided while its message was in flight: at that time no sent message was listed yet. */
async function writeBack(
  broker: Pick<Broker, 'clock' | 'log' | 'store' | 'vault'>,
  delivery: NoticeDeliveryTable,
): Promise<void> {
  const { db } = broker.store;
  const subject = await readSubject(broker, db, delivery);
  if (!subject?.waits) await putDeliveries(db, outcomesOf(await listSent(db, delivery, delivery), broker.clock()));
}
