/** Web Push (RFC 8030): encrypted for one browser (RFC 8291), signed by this broker's key (RFC 8292). */
import { createHash } from 'node:crypto';
import { encryptNotification, vapidHeaders } from '@block65/webcrypto-web-push';
import { z } from 'zod';
import { readStored } from '../store/stored-json.ts';
import type { ChannelKind, Sending, Sent } from './channel.ts';
import { agentText, type Message, sentenceText } from './message.ts';
import { judge, post } from './post.ts';

/** A browser's subscription, as it is sealed. */
export const StoredSubscription = z.strictObject({
  endpoint: z.url(),
  keys: z.strictObject({ p256dh: z.string(), auth: z.string() }),
});
export type StoredSubscription = z.infer<typeof StoredSubscription>;

/** A push service takes 4,096 bytes (RFC 8030 section 7.2), of which 103 are for the encryption. */
const MAX_BYTES = 4_096 - 103;
/** For subjects without an end, and for outcomes: a device that was offline for longer finds the state in the console. */
const DEFAULT_TTL_S = 24 * 3600;
const MAX_TTL_S = 28 * 24 * 3600;

/** The notification's content: words of ours, the sentence, and a link; never a body or a secret. */
type Payload = {
  /** One notification per subject: a later one replaces it. */
  tag: string;
  step: Message['step'];
  title: string;
  sentence: string;
  agent: string | undefined;
  until: string | undefined;
  path: string;
  outcome: string | undefined;
  progress: readonly string[] | undefined;
};

const payloadOf = (message: Message): Payload => ({
  tag: message.subjectId,
  step: message.step,
  title: message.title,
  sentence: sentenceText(message),
  agent: agentText(message),
  until: message.until === undefined ? undefined : new Date(message.until).toISOString(),
  path: new URL(message.link).pathname,
  outcome: message.outcome,
  progress: message.progress,
});

/** Encodes the payload, its sentence truncated where the whole would be too long. */
function fitting(payload: Payload): Uint8Array {
  let { sentence } = payload;
  for (;;) {
    const bytes = Buffer.from(JSON.stringify({ ...payload, sentence }));
    if (bytes.length <= MAX_BYTES || sentence === '') return bytes;
    // A character takes at most 6 bytes of JSON, so a few iterations are enough.
    const over = Math.max(1, Math.ceil((bytes.length - MAX_BYTES) / 6)) + 1;
    sentence = `${sentence.slice(0, Math.max(0, sentence.length - over - 1)).toWellFormed()}…`;
    if (sentence === '…') sentence = '';
  }
}

/** The same for a repeated send and for the outcome: of several messages waiting at the push service, only the last is delivered. */
const topicOf = (message: Message): string =>
  createHash('sha256').update(message.subjectId).digest('base64url').slice(0, 32);

function ttlOf({ until, step }: Message, now: number): number {
  if (until === undefined || step === 'outcome') return DEFAULT_TTL_S;
  return Math.min(Math.max(Math.ceil((until - now) / 1000), 0), MAX_TTL_S);
}

async function send(sending: Sending, message: Message): Promise<Sent> {
  const { secret, now, push: way, channelId } = sending;
  if (!secret || !way) return { kind: 'gone', why: 'The address of this device is no longer known.' };
  const subscription = {
    expirationTime: null,
    ...readStored(StoredSubscription, secret.reveal(), `subscription of channel ${channelId}`),
  };
  const { publicKey, privateKey, subject } = await way.key();
  const { headers: vapid } = await vapidHeaders(subscription, { publicKey, privateKey: privateKey.reveal(), subject });
  const url = new URL(subscription.endpoint);
  const push = async (payload: Payload, pad: boolean) =>
    await post(
      { outbound: way.outbound, channelId },
      {
        url,
        headers: {
          ...vapid,
          'content-type': 'application/octet-stream',
          'content-encoding': 'aes128gcm',
          ttl: `${ttlOf(message, now)}`,
          topic: topicOf(message),
          urgency: message.step === 'outcome' || message.step === 'update' ? 'normal' : 'high',
        },
        body: Buffer.from(await encryptNotification(subscription, fitting(payload), { pad })),
      },
    );
  const payload = payloadOf(message);
  let answer = await push(payload, true);
  // A push service with a smaller limit than the standard's gets the payload without the sentence.
  if (answer.kind !== 'unreachable' && answer.status === 413) answer = await push({ ...payload, sentence: '' }, false);
  return judge(answer, { gone: [404, 410], now });
}

/** An update, and the outcome, replace the message: same topic at the push service, same tag on the device. */
export const webPush: ChannelKind = { send, edit: (sending, message) => send(sending, message) };
