/** ntfy (https://docs.ntfy.sh/publish/): published as JSON, as plain text without links, with one button that opens the page. */
import type { ChannelKind, Sending, Sent } from './channel.ts';
import { linesOf, type Message, unlinked } from './message.ts';
import { judge, post } from './post.ts';

const PUBLIC_SERVER = 'https://ntfy.sh';
/** ntfy turns messages of more than 4,096 bytes into attachments. */
const MAX_BYTES = 4_000;

function cut(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= MAX_BYTES) return text;
  return `${new TextDecoder().decode(bytes.subarray(0, MAX_BYTES), { stream: true })}…`;
}

/** Publishes a message. `sequenceId`: a message with the same one replaces the earlier one (ntfy 2.16 and later; older releases ignore it). */
async function publish(sending: Sending, message: Message, sequenceId: string): Promise<Sent> {
  const { settings, secret, now } = sending;
  const { title, link, step } = message;
  const answer = await post(sending, {
    // JSON is published to the root URL of the server.
    url: new URL(typeof settings.server === 'string' ? settings.server : PUBLIC_SERVER),
    headers: {
      'content-type': 'application/json',
      ...(secret && { authorization: `Bearer ${secret.reveal()}` }),
    },
    body: JSON.stringify({
      topic: settings.topic,
      title,
      message: cut(linesOf(message).map(unlinked).join('\n')),
      priority: step === 'outcome' || step === 'update' ? 2 : 4,
      click: link,
      actions: [{ action: 'view', label: 'Open', url: link }],
      sequence_id: sequenceId,
    }),
  });
  const sent = judge(answer, { now });
  return sent.kind === 'sent' ? { kind: 'sent', ref: sequenceId } : sent;
}

export const ntfy: ChannelKind = {
  send: (sending, message) => publish(sending, message, message.id),
  edit: async (sending, message, refs) => {
    for (const ref of refs) {
      const sent = await publish(sending, message, ref);
      if (sent.kind !== 'sent') return sent;
    }
    return { kind: 'sent' };
  },
};
