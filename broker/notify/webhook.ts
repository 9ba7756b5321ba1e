/** Signed webhooks (Standard Webhooks 1.0). */
import type { ChannelKind, Sending, Sent } from './channel.ts';
import { type Message, sentenceText } from './message.ts';
import { judge, post } from './post.ts';
import { signWebhook } from './sign-webhook.ts';

/** The suffixes of `type`, where they differ from the step. */
const SUFFIXES: Readonly<Partial<Record<Message['step'], string>>> = { first: 'opened', update: 'updated' };

/** Builds the body with `type`, `timestamp` and `data`, as the standard requires. */
function bodyOf(message: Message, now: number): string {
  const { event, step, subjectId, title, agent, parent, platform, until, link, outcome, progress, approvers } = message;
  return JSON.stringify({
    type: event === 'test' ? 'test' : `${event}.${SUFFIXES[step] ?? step}`,
    timestamp: new Date(now).toISOString(),
    data: {
      id: subjectId,
      title,
      sentence: sentenceText(message),
      agent: agent ?? null,
      parent: parent ?? null,
      platform: platform?.id ?? null,
      platform_name: platform?.name ?? null,
      until: until === undefined ? null : new Date(until).toISOString(),
      link,
      outcome: outcome ?? null,
      progress: progress ?? [],
      approvers: approvers ? { needed: approvers.needed, approved_by: approvers.approvedBy } : null,
    },
  });
}

async function send(sending: Sending, message: Message): Promise<Sent> {
  const { settings, secret, now } = sending;
  if (secret === undefined) return { kind: 'failed', why: 'It has no secret to sign with: give it one.' };
  const body = bodyOf(message, now);
  const answer = await post(sending, {
    url: new URL(String(settings.url)),
    headers: { 'content-type': 'application/json', ...signWebhook(secret, { id: `msg_${message.id}`, now, body }) },
    body,
  });
  // "410 Gone: the endpoint should be disabled".
  return judge(answer, { gone: [410], now });
}

export const webhook: ChannelKind = {
  send,
  // An update and the outcome are sent as further webhooks, with ids of their own.
  edit: (sending, message) => send(sending, message),
};
