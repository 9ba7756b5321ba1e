/** Simulates the requests of Slack and Telegram for clicks on buttons. */
import { createHmac } from 'node:crypto';
import { telegramSecret } from '../../../broker/notify/clicks.ts';
import { jsonPost, send } from '../agent.ts';
import { type Body, SLACK_CHANNEL, TELEGRAM_CHAT } from '../servers/chat-servers.ts';
import type { World } from '../world.ts';

export const SIGNING_SECRET = '8f742231b10e8888abcd99yyyzzz85a5';
export const ANN = 'U0123456789';
export const ANN_ON_TELEGRAM = 123456789;

/** Returns the tokens of a message's buttons. */
export const slackButtons = ({ blocks }: Body): { approve: string; deny: string } | undefined => {
  const elements: Body[] = blocks.find(({ type }: Body) => type === 'actions')?.elements ?? [];
  return elements.length === 0
    ? undefined
    : (Object.fromEntries(elements.map(({ action_id, value }) => [action_id, value])) as never);
};
export const telegramButtons = ({ reply_markup }: Body): { approve: string; deny: string } | undefined => {
  const [approve, deny] = reply_markup.inline_keyboard.flat();
  return approve && { approve: approve.callback_data, deny: deny.callback_data };
};

export type Pressed = {
  baseUrl?: string;
  user?: string;
  place?: string;
  /** Offset of the signed time, in seconds. */
  off?: number;
  signingSecret?: string;
  /** Replaces the whole body. */
  body?: string;
  /** Replaces the body after it was signed. */
  altered?: string;
};

/** Sends a click as Slack does: a signed form. */
export async function pressInSlack(world: World, channelId: string, value: string, pressed: Pressed = {}) {
  const { baseUrl = world.running.baseUrl, user = ANN, place = SLACK_CHANNEL, off = 0 } = pressed;
  const payload = {
    type: 'block_actions',
    user: { id: user, username: 'ann', team_id: 'T0123456789' },
    team: { id: 'T0123456789' },
    channel: { id: place, name: 'ops' },
    message: { ts: '1700000000.000000' },
    response_url: 'https://hooks.slack.com/actions/1',
    actions: [{ type: 'button', action_id: 'approve', block_id: 'x', value, action_ts: '1' }],
  };
  const body = pressed.body ?? new URLSearchParams({ payload: JSON.stringify(payload) }).toString();
  const timestamp = `${Math.floor((Date.now() + world.clock.skewMs) / 1000) + off}`;
  const digest = createHmac('sha256', pressed.signingSecret ?? SIGNING_SECRET)
    .update(`v0:${timestamp}:${body}`)
    .digest('hex');
  return await send(`${baseUrl}/notify/slack/${channelId}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'x-slack-request-timestamp': timestamp,
      'x-slack-signature': `v0=${digest}`,
    },
    body: pressed.altered ?? body,
  });
}

/** Sends a click as Telegram does: an update, with the secret of the channel. */
export async function pressInTelegram(
  world: World,
  channelId: string,
  data: string,
  {
    user = ANN_ON_TELEGRAM,
    place = Number(TELEGRAM_CHAT),
    secret,
  }: { user?: number; place?: number; secret?: string } = {},
) {
  const { running } = world;
  return await send(
    `${running.baseUrl}/notify/telegram/${channelId}`,
    jsonPost(
      {
        update_id: 1,
        callback_query: {
          id: '42',
          from: { id: user, is_bot: false, first_name: 'Ann' },
          message: { message_id: 1, chat: { id: place, type: 'supergroup' } },
          chat_instance: '1',
          data,
        },
      },
      {
        'x-telegram-bot-api-secret-token':
          secret ?? telegramSecret(running.broker.vault.masterKeys().current, channelId),
      },
    ),
  );
}
