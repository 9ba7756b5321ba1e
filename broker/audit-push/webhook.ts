/** Posts batches to a URL: JSON lines, or an array for OCSF; signed by Standard Webhooks, or with a header. */

import type { SettingsOf } from '../config-file/audit-sinks.ts';
import { signWebhook } from '../notify/sign-webhook.ts';
import { postBatch } from './post-batch.ts';
import type { Delivered, Delivering, Sink } from './sink.ts';

type Webhook = Delivering<SettingsOf<'webhook'>>;

async function send(delivering: Webhook, id: string, texts: readonly string[]): Promise<Delivered> {
  const { settings, secret, format, now } = delivering;
  if (secret === undefined) return { kind: 'failed', why: 'It has no secret to sign with: give it one.' };
  const body = format === 'ocsf' ? `[${texts.join(',')}]` : texts.map((text) => `${text}\n`).join('');
  const signed = signWebhook(secret, { id, now, body });
  const sent = await postBatch(delivering, {
    url: new URL(settings.url),
    headers: {
      'content-type': format === 'ocsf' ? 'application/json' : 'application/x-ndjson',
      // The id is sent without a signature, too, so that receivers can detect duplicates.
      ...(settings.header === undefined
        ? signed
        : { 'webhook-id': id, [settings.header.toLowerCase()]: secret.reveal() }),
    },
    body,
  });
  return sent.kind === 'taken' ? { kind: 'arrived' } : sent;
}

export const webhook: Sink<SettingsOf<'webhook'>> = {
  deliver: (delivering, { id, lines }) =>
    send(
      delivering,
      id,
      lines.map(({ text }) => text),
    ),
  test: (delivering) =>
    send(
      delivering,
      `test_${delivering.now}`,
      delivering.format === 'ocsf' ? [] : [JSON.stringify({ type: 'test', sink: delivering.name })],
    ),
};
