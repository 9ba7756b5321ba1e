/**
 * Telegram's Bot API (https://core.telegram.org/bots/api#sendmessage, #editmessagetext): without parse_mode, so nothing is parsed as markup;
 * untrusted text stands in a `pre` entity, in which clients detect no links, names or commands.
 */
import type { Answer } from '../egress/dispatcher.ts';
import type { ChannelKind, Sending, Sent } from './channel.ts';
import { cutText, linesOf, type Message } from './message.ts';
import { answeredJson, judge, MAX_AFTER_MS, post } from './post.ts';

const SERVER = 'https://api.telegram.org';
/** "1-4096 characters after entities parsing". */
const MAX_TEXT_LENGTH = 3_500;

/** Calls a method of the Bot API with a JSON body. Never rejects. */
export function callTelegram(sending: Sending, method: string, body: object): Promise<Answer> {
  const { settings, secret } = sending;
  const server = typeof settings.server === 'string' ? settings.server : SERVER;
  return post(sending, {
    url: new URL(`/bot${secret?.reveal() ?? ''}/${method}`, server),
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
}

/** Offsets and lengths of entities are in UTF-16 code units, like JavaScript string lengths. */
function textOf(message: Message): object {
  const { title, link, buttons } = message;
  const lines = cutText(linesOf(message).join('\n'), MAX_TEXT_LENGTH);
  const head = `${title}\n\n`;
  return {
    text: `${head}${lines}\n\n${link}`,
    entities: [
      { type: 'bold', offset: 0, length: title.length },
      { type: 'pre', offset: head.length, length: lines.length },
    ],
    link_preview_options: { is_disabled: true },
    // An edit with an empty keyboard removes the former buttons.
    reply_markup: {
      inline_keyboard: buttons
        ? [
            [
              { text: 'Approve', callback_data: buttons.approve },
              { text: 'Deny', callback_data: buttons.deny },
            ],
          ]
        : [],
    },
  };
}

type Answered = {
  ok?: unknown;
  description?: unknown;
  result?: { message_id?: unknown; chat?: { id?: unknown }; url?: unknown };
  parameters?: { retry_after?: unknown; migrate_to_chat_id?: unknown };
};

/** Errors with status 400 that a person has to fix. */
const MENDABLE = [
  {
    sign: /message thread not found|TOPIC_(?:CLOSED|DELETED)/i,
    why: 'Telegram: the topic (thread) is closed, or does not exist.',
  },
  {
    sign: /not enough rights|have no rights|CHAT_WRITE_FORBIDDEN/i,
    why: 'Telegram: the bot lacks the right to write there.',
  },
];

/** Answers are `{ ok, error_code, description, parameters }` (Making requests; ResponseParameters). */
function judgeTelegram(answer: Answer, now: number): Sent & { unchangeable?: boolean; placeLost?: boolean } {
  const judged = judge(answer, { now });
  const { ok, description, result, parameters } = answeredJson(answer) as Answered;
  if (judged.kind === 'sent' && ok === true) {
    const { message_id: id, chat } = result ?? {};
    return typeof id === 'number' && typeof chat?.id === 'number' ? { kind: 'sent', ref: `${chat.id} ${id}` } : judged;
  }
  const status = answer.kind === 'answer' ? answer.status : 0;
  const reason = typeof description === 'string' ? description : '';
  if (status === 401 || status === 404) return { kind: 'gone', why: 'Telegram knows no bot with this token.' };
  if (status === 403)
    return {
      kind: 'gone',
      why: 'The bot may not write there: it was blocked, or is not in the chat (403).',
      placeLost: true,
    };
  if (/chat not found/i.test(reason))
    return { kind: 'gone', why: 'Telegram knows no such chat, or the bot is not in it.', placeLost: true };
  if (typeof parameters?.migrate_to_chat_id === 'number')
    return {
      kind: 'gone',
      why: 'The group became a supergroup, which has another id: set chat to it.',
      placeLost: true,
    };
  if (/message is not modified|message to edit not found|message can't be edited|MESSAGE_ID_INVALID/i.test(reason))
    return { kind: 'failed', why: 'The message cannot be changed.', unchangeable: true };
  const mendable = MENDABLE.find(({ sign }) => sign.test(reason));
  if (mendable) return { kind: 'failed', why: mendable.why };
  const seconds = parameters?.retry_after;
  if (status === 429 && typeof seconds === 'number' && seconds >= 0)
    return {
      kind: 'failed',
      why: 'Telegram: too many messages (429).',
      afterMs: Math.min(seconds * 1000, MAX_AFTER_MS),
    };
  return judged.kind === 'sent' ? { kind: 'failed', why: 'Telegram did not accept the message.' } : judged;
}

async function send(sending: Sending, message: Message): Promise<Sent> {
  const { chat, thread } = sending.settings;
  const body = { chat_id: chat, ...(thread !== undefined && { message_thread_id: thread }), ...textOf(message) };
  return judgeTelegram(await callTelegram(sending, 'sendMessage', body), sending.now);
}

async function edit(sending: Sending, message: Message, refs: readonly string[]): Promise<Sent> {
  for (const ref of refs) {
    const [chat, id] = ref.split(' ').map(Number);
    if (!chat || !id) continue;
    const body = { chat_id: chat, message_id: id, ...textOf(message) };
    const sent = judgeTelegram(await callTelegram(sending, 'editMessageText', body), sending.now);
    // If the channel has been set to another chat since, that one may work.
    const isElsewhere = sent.placeLost && `${chat}` !== `${sending.settings.chat}`;
    if (sent.kind !== 'sent' && !sent.unchangeable && !isElsewhere) return sent;
  }
  return { kind: 'sent' };
}

/** Calls `setWebhook`: from then on getUpdates returns nothing. */
async function listen(sending: Sending, address: string, secret: string): Promise<Sent> {
  const body = { url: address, secret_token: secret, allowed_updates: ['callback_query'] };
  const judged = judgeTelegram(await callTelegram(sending, 'setWebhook', body), sending.now);
  if (judged.kind !== 'failed') return judged;
  const why = `Telegram does not accept ${address} for clicks: it has to be https, on port 443, 80, 88 or 8443, and to be reached from outside.`;
  return { ...judged, why };
}

/** Calls `deleteWebhook`, unless the bot has another webhook by now: that one belongs to another channel or program. */
async function stopListening(sending: Sending, address: string): Promise<Sent> {
  const info = await callTelegram(sending, 'getWebhookInfo', {});
  const { ok, result } = answeredJson(info) as Answered;
  if (ok !== true) return judgeTelegram(info, sending.now);
  if (result?.url !== address) return { kind: 'sent' };
  return judgeTelegram(await callTelegram(sending, 'deleteWebhook', {}), sending.now);
}

export const telegram: ChannelKind = { send, edit, listen, stopListening };
