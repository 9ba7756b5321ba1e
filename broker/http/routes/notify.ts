/** Endpoints to which Slack and Telegram post clicks on buttons. They are not part of the public interface and in no document. */
import { UUID_PATTERN } from '../../crypto/ids.ts';
import { decideClick } from '../../notify/decide-click.ts';
import { takeClick } from '../../notify/take-click.ts';
import { Refusal } from '../errors.ts';
import { bytesOf } from '../request-pieces.ts';
import { route } from '../route.ts';

/** A payload repeats the message, in which every character may be encoded as nine. */
const MAX_BYTES = 256 * 1024;

const clicksOf = (kind: 'slack' | 'telegram', summary: string) =>
  route({
    method: 'POST',
    path: `/notify/${kind}/{id}`,
    auth: 'none',
    limit: { name: `clicks-${kind}`, perMinute: 120, per: 'address' },
    capability: `notify.${kind}`,
    summary,
    answers: { 200: { description: 'It was accepted; the result is shown in the chat.', empty: true } },
    errors: ['invalid_signature', 'payload_too_large', 'rate_limited'],
    handle: async ({ services, params, request }) => {
      const body = await bytesOf(request, MAX_BYTES);
      const id = String((params as Record<string, string>).id).toLowerCase();
      const taken = UUID_PATTERN.test(id)
        ? await takeClick(services.broker, kind, id, { headers: request.headers, body })
        : undefined;
      if (!taken) throw new Refusal('invalid_signature', 'This is not signed for a channel of this broker.');
      const { channel, sending, click } = taken;
      // The services wait three seconds at most, so they are answered before the click is handled.
      return { status: 200, ...(click && { done: () => void decideClick(services, channel, sending, click) }) };
    },
  });

export const clickRoutes = [
  clicksOf('slack', 'Takes a click on a button in Slack, signed by Slack.'),
  clicksOf('telegram', 'Takes a click on a button in Telegram, with the secret of the channel.'),
];
