/**
 * Slack, as an app with a bot token (https://docs.slack.dev/reference/methods/chat.postMessage, chat.update): Block Kit whose texts are plain_text,
 * in which nothing is parsed as a link, a mention or formatting.
 */
import { slackSecret } from '../config-file/chat-channels.ts';
import type { Answer } from '../egress/dispatcher.ts';
import type { ChannelKind, Sending, Sent } from './channel.ts';
import { cutText, linesOf, type Message, sentenceText } from './message.ts';
import { answeredJson, askedToWait, judge, post } from './post.ts';

const SERVER = 'https://slack.com';
/** Length limits of a header block, of a section, and of the text of a notification. */
const MAX = { title: 150, section: 2_900, notification: 1_000 };

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };
/** "Escaping text": these three are Slack's only control characters (https://docs.slack.dev/messaging/formatting-message-text). */
const escaped = (text: string): string => text.replace(/[&<>]/g, (one) => ESCAPES[one] ?? '');

/** Escapes a text and limits its length as it is sent, by truncating it before it is escaped, so that no escape sequence is split. */
function escapedWithin(text: string, most: number): string {
  let cut = cutText(text, most);
  // Each character takes at most 5, `&amp;`.
  for (let over = escaped(cut).length - most; over > 0; over = escaped(cut).length - most)
    cut = cutText(cut, cut.length - Math.ceil(over / 5));
  return escaped(cut);
}

const plain = (text: string, most: number) => ({ type: 'plain_text', text: escapedWithin(text, most), emoji: false });

/** Inserts the invisible U+2060 WORD JOINER, so that nothing is parsed as a link, a mention or formatting. */
export const inertText = (text: string): string =>
  escaped(text).replace(/:\/\/|[@#*_~`]/g, (found) => `${found[0]}\u2060${found.slice(1)}`);

/** Errors after which the channel cannot be used any more (chat.postMessage, Errors). */
const GONE: Readonly<Record<string, string>> = {
  channel_not_found: 'Slack knows no such channel, or the app was not added to it',
  is_archived: 'the channel is archived',
  token_revoked: 'the token was revoked',
  token_expired: 'the token has expired',
  account_inactive: 'the app was removed from the workspace',
  invalid_auth: 'the token is not valid',
};
/** Errors that a person has to fix, with advice. */
const MENDABLE: Readonly<Record<string, string>> = {
  not_in_channel: 'add the app to the channel: /invite @app',
  missing_scope: 'the app lacks the scope chat:write',
  restricted_action: 'the workspace does not let the app post there',
  ratelimited: 'too many messages',
};
/** The message was deleted, or cannot be edited any more: a retry is useless. */
const UNCHANGEABLE = ['message_not_found', 'cant_update_message', 'edit_window_closed', 'message_limit_exceeded'];
/** The conversation of the message cannot be used any more. If the channel has been set to another one since, that one may work. */
const PLACE_LOST = ['channel_not_found', 'is_archived', 'not_in_channel', 'restricted_action'];

/** Calls a method of the Web API with a JSON body. Never rejects. */
export function callSlack(sending: Sending, method: string, body: object): Promise<Answer> {
  const { settings, secret } = sending;
  const server = typeof settings.server === 'string' ? settings.server : SERVER;
  return post(sending, {
    url: new URL(`/api/${method}`, server),
    headers: {
      'content-type': 'application/json; charset=utf-8',
      authorization: `Bearer ${slackSecret(secret?.reveal() ?? '').token}`,
    },
    body: JSON.stringify(body),
  });
}

function blocksOf(message: Message): object[] {
  const { title, link, buttons } = message;
  const lines = linesOf(message);
  // Only the address comes from outside; a `|` or `>` in it would end the link's syntax.
  const address = escaped(link).replaceAll('|', '%7C');
  const button = (action_id: 'approve' | 'deny', text: string, style: string, value: string) => ({
    type: 'button',
    action_id,
    text: { type: 'plain_text', text, emoji: false },
    style,
    value,
  });
  return [
    { type: 'header', text: plain(title, MAX.title) },
    { type: 'section', text: plain(lines.join('\n'), MAX.section) },
    ...(buttons
      ? [
          {
            type: 'actions',
            elements: [
              button('approve', 'Approve', 'primary', buttons.approve),
              button('deny', 'Deny', 'danger', buttons.deny),
            ],
          },
        ]
      : []),
    { type: 'context', elements: [{ type: 'mrkdwn', text: `<${address}|Open in Agent Broker>`, verbatim: true }] },
  ];
}

const bodyOf = (message: Message): object => ({
  text: inertText(cutText(`${message.title}: ${message.outcome ?? sentenceText(message)}`, MAX.notification)),
  blocks: blocksOf(message),
  mrkdwn: false,
  parse: 'none',
  link_names: false,
  unfurl_links: false,
  unfurl_media: false,
});

type Answered = { ok?: unknown; error?: unknown; channel?: unknown; ts?: unknown };

/** Slack reports errors as `ok: false` with status 200, too. */
function judgeSlack(answer: Answer, now: number): Sent & { error?: string } {
  const judged = judge(answer, { now });
  const { ok, error: told, channel, ts } = answeredJson(answer) as Answered;
  if (judged.kind === 'sent' && ok === true)
    return typeof channel === 'string' && typeof ts === 'string' ? { kind: 'sent', ref: `${channel} ${ts}` } : judged;
  const error = typeof told === 'string' ? told : '';
  if (Object.hasOwn(GONE, error)) return { kind: 'gone', why: `Slack: ${GONE[error]} (${error}).`, error };
  if (Object.hasOwn(MENDABLE, error)) {
    const afterMs = askedToWait(answer, now);
    const why = `Slack: ${MENDABLE[error]} (${error}).`;
    return { kind: 'failed', why, error, ...(afterMs !== undefined && { afterMs }) };
  }
  if (judged.kind !== 'sent') return { ...judged, error };
  return { kind: 'failed', why: 'Slack did not accept the message.', error };
}

async function send(sending: Sending, message: Message): Promise<Sent> {
  const body = { channel: sending.settings.channel, ...bodyOf(message) };
  return judgeSlack(await callSlack(sending, 'chat.postMessage', body), sending.now);
}

async function edit(sending: Sending, message: Message, refs: readonly string[]): Promise<Sent> {
  for (const ref of refs) {
    const [channel, ts] = ref.split(' ');
    if (!channel || !ts) continue;
    const sent = judgeSlack(await callSlack(sending, 'chat.update', { channel, ts, ...bodyOf(message) }), sending.now);
    const final = channel === sending.settings.channel ? UNCHANGEABLE : [...UNCHANGEABLE, ...PLACE_LOST];
    if (sent.kind !== 'sent' && !final.includes(sent.error ?? '')) return sent;
  }
  return { kind: 'sent' };
}

export const slack: ChannelKind = { send, edit };
