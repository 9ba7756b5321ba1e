/** Servers on loopback that follow the documentation of Slack's Web API, Telegram's Bot API and a workflow of Teams, with a platform below /items. */
import { expect } from 'vitest';
import { startUpstream, type Upstream } from './upstream.ts';

export const SLACK_TOKEN = 'xoxb-1111111111-CANARYtoken';
export const SLACK_CHANNEL = 'C0123456789';
export const TELEGRAM_TOKEN = '123456:CANARY-telegram-token-0123456789';
export const TELEGRAM_CHAT = '-1001234567890';
export const WORKFLOW_PATH = '/powerautomate/workflows/1/triggers/manual/paths/invoke?api-version=1&sig=CANARYworkflow';

// biome-ignore lint/suspicious/noExplicitAny: bodies of services, of which tests look at any part
export type Body = Record<string, any>;
/** One call of a method, with the body as JSON. */
export type Call = { method: string; body: Body };

export type ChatServer = Upstream & {
  calls: Call[];
  /** Current messages, by the service's id. */
  messages: Map<string, Body>;
  /** The address that Telegram posts updates to; empty: none. */
  webhook: string;
  /** Overrides the next answer, once. */
  next: { status: number; body: object; headers?: Record<string, string> } | undefined;
  /** Whether methods of Slack and Telegram never answer. */
  hangs: boolean;
  of(method: string): Body[];
  waitFor(method: string, count?: number): Promise<Body[]>;
  clear(): void;
};

const tooLong = (block: Body): boolean =>
  (block.type === 'header' && block.text.text.length > 150) ||
  (block.type === 'section' && block.text.text.length > 3000) ||
  (block.elements ?? []).some(({ value = '' }: Body) => value.length > 2000);

const slackAnswer = (server: ChatServer, method: string, body: Body, bearer: string): object => {
  if (bearer !== `Bearer ${SLACK_TOKEN}`) return { ok: false, error: 'invalid_auth' };
  if (body.channel !== SLACK_CHANNEL) return { ok: false, error: 'channel_not_found' };
  if ((body.blocks ?? []).some(tooLong)) return { ok: false, error: 'invalid_blocks' };
  if (method === 'chat.postEphemeral') return { ok: true, message_ts: '1' };
  const ts = method === 'chat.update' ? body.ts : `1700000000.${String(server.messages.size).padStart(6, '0')}`;
  if (method === 'chat.update' && !server.messages.has(ts)) return { ok: false, error: 'message_not_found' };
  server.messages.set(ts, body);
  return { ok: true, channel: SLACK_CHANNEL, ts };
};

const refused = (error_code: number, description: string) => ({ ok: false, error_code, description });

const telegramAnswer = (server: ChatServer, method: string, body: Body, token: string): Body => {
  if (token !== TELEGRAM_TOKEN) return refused(401, 'Unauthorized');
  if (method === 'setWebhook') server.webhook = body.url;
  if (method === 'deleteWebhook') server.webhook = '';
  if (method === 'getWebhookInfo') return { ok: true, result: { url: server.webhook, pending_update_count: 0 } };
  if (/Webhook$|^answerCallbackQuery$/.test(method)) return { ok: true, result: true };
  if (String(body.chat_id) !== TELEGRAM_CHAT) return refused(400, 'Bad Request: chat not found');
  if (body.text.length > 4096) return refused(400, 'Bad Request: message is too long');
  for (const { offset, length } of body.entities ?? [])
    if (offset + length > body.text.length) return refused(400, 'Bad Request: entity is out of range');
  const buttons: Body[] = (body.reply_markup?.inline_keyboard ?? []).flat();
  if (buttons.some(({ callback_data = '' }) => Buffer.byteLength(callback_data) > 64))
    return refused(400, 'Bad Request: BUTTON_DATA_INVALID');
  const id = method === 'editMessageText' ? body.message_id : server.messages.size + 1;
  const before = server.messages.get(`${id}`);
  if (method === 'editMessageText' && !before) return refused(400, 'Bad Request: message to edit not found');
  if (before?.text === body.text) return refused(400, 'Bad Request: message is not modified');
  server.messages.set(`${id}`, body);
  return { ok: true, result: { message_id: id, chat: { id: Number(TELEGRAM_CHAT) }, text: body.text } };
};

/** Starts a server that is all three. */
export async function startChatServer(): Promise<ChatServer> {
  const upstream = await startUpstream();
  const server: ChatServer = Object.assign(upstream, {
    calls: [] as Call[],
    messages: new Map<string, Body>(),
    webhook: '',
    next: undefined as ChatServer['next'],
    hangs: false,
    of: (method: string) => server.calls.filter((one) => one.method === method).map(({ body }) => body),
    waitFor: async (method: string, count = 1) => {
      await expect
        .poll(() => server.of(method).length, { timeout: 10_000, interval: 10 })
        .toBeGreaterThanOrEqual(count);
      return server.of(method);
    },
    clear: () => {
      server.calls.length = 0;
      server.seen.length = 0;
      server.messages.clear();
      server.webhook = '';
      server.next = undefined;
      server.hangs = false;
    },
  });
  server.answer = (request, response, text) => {
    const target = request.url ?? '';
    const body = JSON.parse(text || '{}');
    const reply = (status: number, answer: object | undefined, headers = {}) =>
      response
        .writeHead(status, { 'content-type': 'application/json', ...headers })
        .end(answer === undefined ? '' : JSON.stringify(answer));
    const [, token = '', telegram] = /^\/bot([^/]+)\/(\w+)$/.exec(target) ?? [];
    const slack = /^\/api\/([\w.]+)$/.exec(target)?.[1];
    const method = telegram ?? slack ?? (target.startsWith('/items') ? 'platform' : 'workflow');
    server.calls.push({ method, body });
    if (server.hangs && method !== 'platform') return;
    const { next } = server;
    server.next = undefined;
    if (next) return void reply(next.status, next.body, next.headers);
    if (method === 'platform') return void reply(201, { id: 1 });
    if (slack) return void reply(200, slackAnswer(server, slack, body, `${request.headers.authorization}`));
    if (telegram) {
      const answer = telegramAnswer(server, telegram, body, token);
      return void reply(answer.ok ? 200 : answer.error_code, answer);
    }
    reply(target === WORKFLOW_PATH ? 202 : 404, undefined);
  };
  return server;
}
