/**
 * Microsoft Teams, by a workflow that posts the webhooks it receives
 * (https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using): an Adaptive Card 1.5 whose texts are
 * TextRuns, in which Markdown is not parsed.
 */
import type { ChannelKind, Sending, Sent } from './channel.ts';
import { cutText, linesOf, type Message } from './message.ts';
import { judge, post } from './post.ts';

/** Teams refuses messages of more than 28 KB. */
const MAX_LINE_LENGTH = 4_000;

/** Breaks up `{{DATE(…)}}` and `${…}`, which are functions of cards, and addresses, which become links, by the invisible U+2060 WORD JOINER. */
const inert = (text: string): string =>
  text.replace(/\{\{|\$\{|:\/\//g, (found) => `${found[0]}\u2060${found.slice(1)}`);

const line = (text: string, more: object = {}) => ({
  type: 'RichTextBlock',
  inlines: [{ type: 'TextRun', text: inert(cutText(text, MAX_LINE_LENGTH)), ...more }],
});

const cardOf = (message: Message): object => ({
  type: 'AdaptiveCard',
  $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
  version: '1.5',
  msteams: { width: 'Full' },
  body: [line(message.title, { weight: 'Bolder', size: 'Medium' }), ...linesOf(message).map((one) => line(one))],
  actions: [{ type: 'Action.OpenUrl', title: 'Open in Agent Broker', url: message.link }],
});

async function send(sending: Sending, message: Message): Promise<Sent> {
  const { secret, now } = sending;
  if (secret === undefined) return { kind: 'failed', why: 'It has no address to post to: give it one.' };
  const answer = await post(sending, {
    url: new URL(secret.reveal()),
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      type: 'message',
      attachments: [
        { contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null, content: cardOf(message) },
      ],
    }),
  });
  // 404 and 410: the workflow was deleted. 202: it was accepted; only the workflow's owner can see whether it was posted.
  return judge(answer, { gone: [404, 410], now });
}

/** A workflow does not report which message it posted, so the outcome is not written back. */
export const teams: ChannelKind = { send };
