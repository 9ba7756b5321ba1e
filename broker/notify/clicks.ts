/** Verifies and parses clicks that Slack and Telegram report: whether the request is genuine, what was pressed, and by whom. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { parseStrictJson } from '../../json/strict.ts';
import type { Broker } from '../broker.ts';
import { slackSecret } from '../config-file/chat-channels.ts';
import { deriveKey, type MasterKey } from '../crypto/master-key.ts';
import type { Instant } from '../policy/facts.ts';
import type { Sending } from './channel.ts';
import { callSlack, inertText } from './slack.ts';
import { callTelegram } from './telegram.ts';

/** `person`, `place`: the service's ids of the person and of the conversation. `tell`: shows a text to whoever clicked. */
export type Click = { token: string; person: string; place: string; tell(text: string): Promise<unknown> };

type Request = { headers: Readonly<Record<string, string | string[] | undefined>>; body: Buffer };

const headerOf = ({ headers }: Request, name: string): string => {
  const value = headers[name];
  return typeof value === 'string' ? value : '';
};

const equal = (one: string, other: string): boolean => {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
};

/** "If the timestamp is more than five minutes from local time, it could be a replay attack." */
const SLACK_LATE_SECONDS = 300;

/** Whether Slack signed this request within the last five minutes (https://docs.slack.dev/authentication/verifying-requests-from-slack). */
export function isFromSlack(request: Request, { secret }: Pick<Sending, 'secret'>, now: Instant): boolean {
  const { signing_secret: signing } = slackSecret(secret?.reveal() ?? '');
  const timestamp = headerOf(request, 'x-slack-request-timestamp');
  if (signing === undefined || !/^\d{1,12}$/.test(timestamp)) return false;
  if (Math.abs(now / 1000 - Number(timestamp)) > SLACK_LATE_SECONDS) return false;
  const digest = createHmac('sha256', signing).update(`v0:${timestamp}:`).update(request.body).digest('hex');
  return equal(headerOf(request, 'x-slack-signature'), `v0=${digest}`);
}

/** Returns the secret that Telegram sends along (setWebhook, secret_token). It is derived from the master key, so that nothing is stored. */
export const telegramSecret = (key: MasterKey, channelId: string): string =>
  createHmac('sha256', deriveKey(key, 'clicks in telegram')).update(channelId).digest('base64url');

/** Whether the request carries the channel's secret_token. */
export function isFromTelegram(request: Request, { vault }: Pick<Broker, 'vault'>, channelId: string): boolean {
  const given = headerOf(request, 'x-telegram-bot-api-secret-token');
  const { current, previous } = vault.masterKeys();
  return [current, ...previous].filter((key) => equal(given, telegramSecret(key, channelId))).length > 0;
}

const parsed = <Value>(schema: z.ZodType<Value>, text: string): Value | undefined => {
  const json = parseStrictJson(text);
  return json.ok ? schema.safeParse(json.value).data : undefined;
};

const Token = z.string().max(128);

/** `block_actions` (https://docs.slack.dev/reference/interaction-payloads/block_actions-payload). */
const BlockActions = z.looseObject({
  type: z.literal('block_actions'),
  user: z.looseObject({ id: z.string().regex(/^[UW][A-Z0-9]{5,30}$/) }),
  channel: z.looseObject({ id: z.string().regex(/^[CGD][A-Z0-9]{5,30}$/) }),
  actions: z.tuple([z.looseObject({ type: z.literal('button'), value: Token })]),
});

/** Parses the click in a form that Slack signed; undefined when the form is about something else. */
export function clickInSlack(sending: Sending, body: Buffer): Click | undefined {
  const payload = new URLSearchParams(body.toString('utf8')).getAll('payload');
  const said = payload.length === 1 ? parsed(BlockActions, payload[0] ?? '') : undefined;
  if (!said) return undefined;
  const { user, channel, actions } = said;
  return {
    token: actions[0].value,
    person: user.id,
    place: channel.id,
    // Ephemeral: visible only to that person.
    tell: (text) =>
      callSlack(sending, 'chat.postEphemeral', { channel: channel.id, user: user.id, text: inertText(text) }),
  };
}

/** An update with a callback_query (https://core.telegram.org/bots/api#callbackquery). */
const Update = z.looseObject({
  callback_query: z.looseObject({
    id: z.string().max(64),
    from: z.looseObject({ id: z.int() }),
    message: z.looseObject({ chat: z.looseObject({ id: z.int() }) }),
    data: Token,
  }),
});

/** Parses the click in an update of Telegram; undefined when the update is about something else. */
export function clickInTelegram(sending: Sending, body: Buffer): Click | undefined {
  const query = parsed(Update, body.toString('utf8'))?.callback_query;
  return (
    query && {
      token: query.data,
      person: `${query.from.id}`,
      place: `${query.message.chat.id}`,
      // Telegram allows 0-200 characters.
      tell: (text) =>
        callTelegram(sending, 'answerCallbackQuery', {
          callback_query_id: query.id,
          text: text.slice(0, 200),
          show_alert: true,
        }),
    }
  );
}
