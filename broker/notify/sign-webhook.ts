/** Standard Webhooks 1.0: `webhook-id`, `webhook-timestamp` and `webhook-signature` with HMAC-SHA-256. */
import { createHmac } from 'node:crypto';
import type { Secret } from '../crypto/secret.ts';

/** Prefix of a secret; the key follows in base64. */
const PREFIX = 'whsec_';

/** Returns the headers that sign a body. `id`: the same each time that the same message is sent. `now`: milliseconds since the epoch. */
export function signWebhook(
  secret: Secret,
  { id, now, body }: { id: string; now: number; body: string },
): Record<string, string> {
  const timestamp = `${Math.floor(now / 1000)}`;
  const key = Buffer.from(secret.reveal().slice(PREFIX.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
}
