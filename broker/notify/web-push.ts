/** Web Push (RFC 8030): encrypted for one browser (RFC 8291), signed by this broker's key (RFC 8292). */
import { createHash } from 'node:crypto';
import { encryptNotification, vapidHeaders } from '@block65/webcrypto-web-push';
import { z } from 'zod';
import { readStored } from '../store/stored-json.ts';
import type { ChannelKind, Sending, Sent } from './channel.ts';
import { type Message, sentenceText } from './message.ts';
import { judge, post } from './post.ts';

/** What a browser says of its subscription, as it is sealed. */
export const StoredSubscription = z.strictObject({
  endpoint: z.url(),
  keys: z.strictObject({ p256dh: z.string(), auth: z.string() }),
});
export type StoredSubscription = z.infer<typeof StoredSubscription>;

/** A push service takes 4,096 bytes (RFC 8030 section 7.2), of which 103 are for the encryption. */
const MAX_BYTES = 4_096 - 103;
/** Of what ends at no set time, and of outcomes: who was offline for longer looks into the console. */
const USUAL_TTL_S = 24 * 3600;
const LONGEST_TTL_S = 28 * 24 * 3600;

/** Of a message: our own words, the sentence, and where to look; never a body or a secret. */
type Payload = {
  /** One notification a subject: what comes later takes the place of it. */
  tag: string;
  step: Message['step'];
  title: string;
  sentence: string;
  agent: string | undefined;
  until: string | undefined;
  path: string;
  outcome: string | undefined;
};

const payloadOf = (message: Message): Payload => ({
  tag: message.subjectId,
  step: message.step,
  title: message.title,
  sentence: sentenceText(message),
  agent: message.agent,
  until: message.until === undefined ? undefined : new Date(message.until).toISOString(),
  path: new URL(message.link).pathname,
  outcome: message.outcome,
});

/** The payload as bytes, its sentence cut where the whole would be too long. */
function fitting(payload: Payload): Uint8Array {
  let { sentence } = payload;
  for (;;) {
    const bytes = Buffer.from(JSON.stringify({ ...payload, sentence }));
    if (bytes.length <= MAX_BYTES || sentence === '') return bytes;
    // A character is at most 6 bytes of JSON; a few rounds do.
    const over = Math.max(1, Math.ceil((bytes.length - MAX_BYTES) / 6)) + 1;
    sentence = `${sentence.slice(0, Math.max(0, sentence.length - over - 1)).toWellFormed()}…`;
    if (sentence === '…') sentence = '';
  }
}

/** The same for a second copy and for the outcome: of several that wait at the service, the last one is delivered. */
const topicOf = (message: Message): string =>
  createHash('sha256').update(message.subjectId).digest('base64url').slice(0, 32);

function ttlOf({ until, step }: Message, now: number): number {
  if (until === undefined || step === 'outcome') return USUAL_TTL_S;
  return Math.min(Math.max(Math.ceil((until - now) / 1000), 0), LONGEST_TTL_S);
}

async function send(sending: Sending, message: Message): Promise<Sent> {
  const { secret, now, push: way, channelId } = sending;
  if (!secret || !way) return { kind: 'gone', why: 'It has no address any more.' };
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
          urgency: message.step === 'outcome' ? 'normal' : 'high',
        },
        body: Buffer.from(await encryptNotification(subscription, fitting(payload), { pad })),
      },
    );
  const payload = payloadOf(message);
  let answer = await push(payload, true);
  // A service that takes less than the standard says gets what is needed to look.
  if (answer.kind !== 'unreachable' && answer.status === 413) answer = await push({ ...payload, sentence: '' }, false);
  return judge(answer, { gone: [404, 410], now });
}

/** The outcome takes the place of the message: same topic at the service, same tag on the device. */
export const webPush: ChannelKind = { send, edit: (sending, message) => send(sending, message) };
