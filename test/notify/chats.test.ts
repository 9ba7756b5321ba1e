/** Slack, Teams and Telegram, each against a small server that follows its documentation. */
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Secret } from '../../broker/crypto/secret.ts';
import { makeOutbound } from '../../broker/egress/dispatcher.ts';
import type { ChannelKind, Sending } from '../../broker/notify/channel.ts';
import { cutText, type Message, readable } from '../../broker/notify/message.ts';
import { slack } from '../../broker/notify/slack.ts';
import { teams } from '../../broker/notify/teams.ts';
import { telegram } from '../../broker/notify/telegram.ts';
import { valuePart } from '../../broker/sentences/readable.ts';
import { afterFile } from '../world/runner/after-file.ts';
import {
  type Body,
  SLACK_CHANNEL,
  SLACK_TOKEN,
  startChatServer,
  TELEGRAM_CHAT,
  TELEGRAM_TOKEN,
  WORKFLOW_PATH,
} from '../world/servers/chat-servers.ts';
import { shared } from '../world/world.ts';

let outbound: Sending['outbound'];
const server = shared(() => startChatServer());
beforeAll(async () => {
  outbound = makeOutbound({ allowPrivate: [server.address], connectTimeoutMs: 2_000 });
  afterFile(() => Promise.all([server.close(), outbound.close()]));
});
beforeEach(() => server.clear());

const HOSTILE = [
  '<!channel> <@U0123456789> <http://evil.example|Approved by ann> *bold* `x` & [Approve](http://evil.example)',
  '{"type":"button","action_id":"approve"} **x** <at>ann</at> {{DATE(2026-01-01T00:00:00Z)}} $\u007bsecret} @everyone #general /approve',
  'аpprove \u202Egnorw\u2066 \u200B',
  '\n'.repeat(10_000),
].join(' ');

const MESSAGE: Message = {
  id: '00000000-0000-4000-8000-000000000001',
  event: 'call_held',
  step: 'first',
  subjectId: '00000000-0000-4000-8000-000000000002',
  title: 'Approval needed',
  sentence: { template: null, parts: [{ text: 'Sends ' }, valuePart('hello', { quoted: true })] },
  agent: 'triage',
  platform: { id: 'demo', name: 'demo' },
  until: Date.UTC(2026, 0, 31, 9, 30),
  link: 'https://broker.example/approve/1',
  outcome: undefined,
};
const hostile: Message = {
  ...MESSAGE,
  agent: readable(HOSTILE),
  sentence: { template: null, parts: [{ text: 'Sends ' }, valuePart(HOSTILE, { quoted: true })] },
};
const over: Message = { ...MESSAGE, step: 'outcome', outcome: 'Approved by ann@acme.example' };
const BUTTONS = { approve: 'A'.repeat(46), deny: 'D'.repeat(46) };

const sending = (secret: string, settings: object): Sending => ({
  channelId: 'c',
  settings: { ...settings },
  secret: new Secret(secret),
  outbound,
  now: 0,
});
const onSlack = (more: object = {}, secret = SLACK_TOKEN) =>
  sending(secret, { channel: SLACK_CHANNEL, server: server.url, ...more });
const onTelegram = (more: object = {}, secret = TELEGRAM_TOKEN) =>
  sending(secret, { chat: TELEGRAM_CHAT, server: server.url, ...more });
const onTeams = (path = WORKFLOW_PATH) => sending(`${server.url}${path}`, {});

/** Sends a message; returns the request that was sent. */
const sent = async (kind: ChannelKind, to: Sending, message: Message) => {
  expect(await kind.send(to, message)).toMatchObject({ kind: 'sent' });
  return server.calls.at(-1)!.body;
};

test('a truncated text splits no character', () => {
  expect(cutText('\u{1f600}'.repeat(5), 10)).toBe('\u{1f600}'.repeat(5));
  expect(cutText('\u{1f600}'.repeat(5), 9)).toBe(`${'\u{1f600}'.repeat(4)}…`);
  expect(cutText('\u{1f600}'.repeat(5), 8)).toBe(`${'\u{1f600}'.repeat(3)}…`);
});

describe('Slack', () => {
  test('posts plain texts with the address, stores the message’s id, and writes the outcome there', async () => {
    const posted = await slack.send(onSlack(), { ...MESSAGE, buttons: BUTTONS });
    expect(posted).toEqual({ kind: 'sent', ref: `${SLACK_CHANNEL} 1700000000.000000` });
    const [{ blocks, unfurl_links }] = server.of('chat.postMessage') as [Body];
    expect(unfurl_links).toBe(false);
    expect(blocks.map(({ type }: { type: string }) => type)).toEqual(['header', 'section', 'actions', 'context']);
    expect(blocks[1].text).toMatchObject({
      type: 'plain_text',
      text: expect.stringContaining('Until: 2026-01-31 09:30'),
    });
    expect(blocks[2].elements.map(({ value }: { value: string }) => value)).toEqual([BUTTONS.approve, BUTTONS.deny]);
    expect(blocks[3].elements[0].text).toBe('<https://broker.example/approve/1|Open in Agent Broker>');
    expect(await slack.edit!(onSlack(), over, [(posted as { ref: string }).ref])).toEqual({ kind: 'sent' });
    const now = JSON.stringify([...server.messages.values()]);
    expect(now).toContain('Approved by ann@acme.example.');
    expect(now).not.toContain('actions');
    expect(server.seen[0]!.headers.authorization).toBe(`Bearer ${SLACK_TOKEN}`);
    expect(await slack.edit!(onSlack(), over, [`${SLACK_CHANNEL} 1.1`])).toEqual({ kind: 'sent' });
  });

  test('an outcome in a conversation that is lost does not end the channel, unless it is the conversation of the channel', async () => {
    const other = 'C999999999';
    expect(await slack.edit!(onSlack(), over, [`${other} 1.1`])).toEqual({ kind: 'sent' });
    expect(await slack.edit!(onSlack({ channel: other }), over, [`${other} 1.1`])).toMatchObject({ kind: 'gone' });
    expect(await slack.edit!(onSlack({}, 'xoxb-22222222'), over, [`${other} 1.1`])).toMatchObject({ kind: 'gone' });
  });

  test('names the parent of a child, whose name the parent chose', async () => {
    const { blocks } = await sent(slack, onSlack(), { ...MESSAGE, parent: 'deploy' });
    expect(blocks[1].text.text).toContain('Agent: triage (a child of deploy)\n');
  });

  test('uses the token from a secret that also has a signing secret', async () => {
    const secret = JSON.stringify({ token: SLACK_TOKEN, signing_secret: 's'.repeat(32) });
    await sent(slack, onSlack({}, secret), MESSAGE);
  });

  test('a hostile sentence creates no mention, link, format or button', async () => {
    const { text, blocks } = await sent(slack, onSlack(), hostile);
    expect(JSON.stringify(blocks).match(/"mrkdwn"/g)).toHaveLength(1);
    expect(JSON.stringify(blocks)).not.toContain('"button"');
    const section = blocks[1].text.text as string;
    for (const one of [section, text]) {
      expect(one).not.toMatch(/[<>]|&(?!amp;|lt;|gt;)/);
      expect(one).not.toMatch(/[\u202E\u2066\u200B]/);
    }
    expect(text).not.toMatch(/:\/\/|\*b|@U|\n/);
    expect(section.split('\n')).toHaveLength(4);
  });

  test.each([
    ['channel_not_found', 'gone'],
    ['is_archived', 'gone'],
    ['token_revoked', 'gone'],
    ['account_inactive', 'gone'],
    ['not_in_channel', 'failed'],
    ['fatal_error', 'failed'],
  ])('%s is %s', async (error, kind) => {
    server.next = { status: 200, body: { ok: false, error } };
    expect(await slack.send(onSlack(), MESSAGE)).toMatchObject({ kind });
  });

  test('a long sentence is within the limit of a section also after it was escaped', async () => {
    const parts = Array.from({ length: 20 }, () => valuePart('<&>'.repeat(40), { quoted: true }));
    const long = { ...MESSAGE, sentence: { template: null, parts } };
    const { text } = (await sent(slack, onSlack(), long)).blocks[1].text;
    expect(text.length).toBeLessThanOrEqual(3_000);
    expect(text.length).toBeGreaterThan(2_800);
    expect(text).toMatch(/&(?:lt|gt|amp);…$/);
  });

  test('returns the requested delay, and quotes nothing of the answer in its error', async () => {
    server.next = { status: 429, body: { ok: false, error: 'ratelimited' }, headers: { 'retry-after': '30' } };
    expect(await slack.send(onSlack(), MESSAGE)).toMatchObject({ kind: 'failed', afterMs: 30_000 });
    server.next = { status: 200, body: { ok: false, error: 'EVIL' } };
    expect(await slack.send(onSlack(), MESSAGE)).toMatchObject({ why: 'Slack did not accept the message.' });
    server.next = { status: 200, body: [] };
    expect(await slack.send(onSlack(), MESSAGE)).toMatchObject({ kind: 'failed' });
    expect(await slack.send(onSlack({}, 'xoxb-22222222'), MESSAGE)).toMatchObject({ kind: 'gone' });
    expect(await slack.send(onSlack({ channel: 'C999999999' }), MESSAGE)).toMatchObject({ kind: 'gone' });
  });
});

describe('Telegram', () => {
  test('sends text without markup and previews, with buttons of its own, and edits it to the outcome', async () => {
    const first = await telegram.send(onTelegram({ thread: 7 }), { ...MESSAGE, buttons: BUTTONS });
    expect(first).toEqual({ kind: 'sent', ref: `${TELEGRAM_CHAT} 1` });
    const [body] = server.of('sendMessage') as [Body];
    expect(body).not.toHaveProperty('parse_mode');
    expect(body).toMatchObject({ message_thread_id: 7, link_preview_options: { is_disabled: true } });
    expect(body.reply_markup.inline_keyboard[0]).toEqual([
      { text: 'Approve', callback_data: BUTTONS.approve },
      { text: 'Deny', callback_data: BUTTONS.deny },
    ]);
    expect(body.text).toMatch(/https:\/\/broker\.example\/approve\/1$/);
    expect(await telegram.edit!(onTelegram(), over, [(first as { ref: string }).ref])).toEqual({ kind: 'sent' });
    const [now] = [...server.messages.values()] as [Body];
    expect(now.text).toContain('Approved by ann@acme.example.');
    expect(now.reply_markup.inline_keyboard).toEqual([]);
    // Again, as after a crash: the message has the outcome already.
    expect(await telegram.edit!(onTelegram(), over, [`${TELEGRAM_CHAT} 1`])).toEqual({ kind: 'sent' });
    expect(await telegram.edit!(onTelegram(), over, [`${TELEGRAM_CHAT} 99`])).toEqual({ kind: 'sent' });
  });

  test('an outcome in a chat that is lost does not end the channel, unless it is the chat of the channel', async () => {
    const other = '-100999';
    expect(await telegram.edit!(onTelegram(), over, [`${other} 1`])).toEqual({ kind: 'sent' });
    // The group became a supergroup, and the admin has set the new id.
    const body = { ok: false, error_code: 400, description: 'x', parameters: { migrate_to_chat_id: -1001234567890 } };
    server.next = { status: 400, body };
    expect(await telegram.edit!(onTelegram(), over, ['-5 1'])).toEqual({ kind: 'sent' });
    expect(await telegram.edit!(onTelegram({ chat: other }), over, [`${other} 1`])).toMatchObject({ kind: 'gone' });
    expect(await telegram.edit!(onTelegram({}, '1:x'), over, [`${other} 1`])).toMatchObject({ kind: 'gone' });
  });

  test('a hostile sentence is put where clients detect no links, names or commands', async () => {
    const { text, entities, reply_markup } = await sent(telegram, onTelegram(), hostile);
    const pre = entities.find(({ type }: { type: string }) => type === 'pre');
    const outside = text.slice(0, pre.offset) + text.slice(pre.offset + pre.length);
    expect(outside).toBe(`Approval needed\n\n\n\n${MESSAGE.link}`);
    expect(text).not.toMatch(/[\u202E\u2066\u200B]/);
    expect(text.split('\n')).toHaveLength(8);
    expect(reply_markup.inline_keyboard).toEqual([]);
    expect(entities.map(({ type }: { type: string }) => type)).toEqual(['bold', 'pre']);
  });

  test.each([
    [{ ok: false, error_code: 403, description: 'Forbidden: bot was blocked by the user' }, 'gone'],
    [{ ok: false, error_code: 401, description: 'Unauthorized' }, 'gone'],
    [{ ok: false, error_code: 400, description: 'Bad Request: chat not found' }, 'gone'],
    [{ ok: false, error_code: 400, description: 'x', parameters: { migrate_to_chat_id: -100 } }, 'gone'],
    [{ ok: false, error_code: 500, description: 'Internal Server Error' }, 'failed'],
  ])('%j is %s', async (body, kind) => {
    server.next = { status: body.error_code, body };
    expect(await telegram.send(onTelegram(), MESSAGE)).toMatchObject({ kind });
  });

  test.each([
    ['message thread not found', 'Telegram: the topic (thread) is closed, or does not exist.'],
    ['TOPIC_CLOSED', 'Telegram: the topic (thread) is closed, or does not exist.'],
    ['not enough rights to send text messages to the chat', 'Telegram: the bot lacks the right to write there.'],
    ['something else', 'It answered 400.'],
  ])('%s is explained', async (description, why) => {
    const body = { ok: false, error_code: 400, description: `Bad Request: ${description}` };
    server.next = { status: 400, body };
    expect(await telegram.send(onTelegram(), MESSAGE)).toEqual({ kind: 'failed', why });
  });

  test.each(['message to edit not found', 'MESSAGE_ID_INVALID'])('an outcome is not retried after %s', async (said) => {
    const body = { ok: false, error_code: 400, description: `Bad Request: ${said}` };
    server.next = { status: 400, body };
    expect(await telegram.edit!(onTelegram(), over, [`${TELEGRAM_CHAT} 7`])).toEqual({ kind: 'sent' });
  });

  test('returns the requested delay, and never its token', async () => {
    const body = { ok: false, error_code: 429, description: 'Too Many Requests', parameters: { retry_after: 12 } };
    server.next = { status: 429, body };
    expect(await telegram.send(onTelegram(), MESSAGE)).toMatchObject({ kind: 'failed', afterMs: 12_000 });
    const nowhere = await telegram.send(onTelegram({ server: 'http://127.0.0.1:1' }), MESSAGE);
    expect(nowhere).toMatchObject({ kind: 'failed' });
    expect(JSON.stringify(nowhere)).not.toContain('CANARY');
  });
});

describe('Teams', () => {
  test('posts an Adaptive Card 1.5 to the workflow, which answers 202', async () => {
    const { type, attachments } = await sent(teams, onTeams(), MESSAGE);
    expect(type).toBe('message');
    expect(attachments[0]).toMatchObject({ contentType: 'application/vnd.microsoft.card.adaptive' });
    expect(attachments[0].content).toMatchObject({
      type: 'AdaptiveCard',
      version: '1.5',
      actions: [{ type: 'Action.OpenUrl', url: MESSAGE.link }],
    });
    expect(teams.edit).toBeUndefined();
  });

  test('a hostile sentence creates no Markdown, mention, function or action', async () => {
    const { attachments } = await sent(teams, onTeams(), hostile);
    const { body, actions } = attachments[0].content;
    expect(new Set(body.map((one: { type: string }) => one.type))).toEqual(new Set(['RichTextBlock']));
    expect(body.flatMap(({ inlines }: Body) => inlines.map((one: Body) => one.type))).toEqual(
      body.map(() => 'TextRun'),
    );
    expect(JSON.stringify(body)).not.toMatch(/:\/\/|\{\{|\$\{|[\u202E\u2066\u200B]/);
    expect(actions).toHaveLength(1);
    expect(Buffer.byteLength(JSON.stringify(attachments))).toBeLessThan(28 * 1024);
  });

  test('a deleted workflow is gone; a busy one is retried later; its address is in no error', async () => {
    expect(await teams.send(onTeams('/other?sig=CANARY'), MESSAGE)).toMatchObject({ kind: 'gone' });
    server.next = { status: 429, body: {}, headers: { 'retry-after': '5' } };
    const busy = await teams.send(onTeams(), MESSAGE);
    expect(busy).toMatchObject({ kind: 'failed', afterMs: 5_000 });
    const nowhere = await teams.send(sending('http://127.0.0.1:1/x?sig=CANARY', {}), MESSAGE);
    expect(JSON.stringify([busy, nowhere])).not.toContain('CANARY');
  });
});
