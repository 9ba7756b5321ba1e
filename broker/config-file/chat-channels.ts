/** Schemas of channels in chats: Slack, Microsoft Teams, Telegram. */
import { z } from 'zod';
import { parseStrictJson } from '../../json/strict.ts';
import { PlatformUrl, recordOf } from '../platforms/fields.ts';

const OwnerEmail = z
  .email('write the e-mail address of an owner, such as "ann@acme.example"')
  .max(254)
  .describe('E-mail address of the owner that the person is.');

const server = (absent: string) =>
  PlatformUrl.meta({ format: 'uri' }).optional().describe(`Address of the API. Absent: ${absent}.`);

const people = (id: RegExp, such: string) =>
  recordOf(z.string().regex(id, `is not the id of a person there; write one such as "${such}"`), OwnerEmail)
    .optional()
    .describe(
      `Who is which owner: id of the person (such as "${such}") and e-mail address. Only they decide by a button, where a rule says decide_in.`,
    );

const SLACK_TOKEN = /^xox[a-z]-[\w-]{8,512}$/;
const SIGNING_SECRET = /^[\x21-\x7e]{16,256}$/;

/** The parts of the secret of a channel in Slack. `signing_secret`: verifies clicks; without it there are no buttons. */
export type SlackSecret = { token: string; signing_secret?: string };

/** Parses the stored secret of a channel in Slack: the bot token alone, or with the signing secret as a JSON object. */
export function slackSecret(text: string): SlackSecret {
  if (!text.startsWith('{')) return { token: text };
  const parsed = parseStrictJson(text);
  const value = parsed.ok ? parsed.value : undefined;
  const { token, signing_secret: signing } = (typeof value === 'object' && value !== null ? value : {}) as Record<
    string,
    unknown
  >;
  return {
    token: typeof token === 'string' ? token : '',
    ...(typeof signing === 'string' && { signing_secret: signing }),
  };
}

function slackProblem(text: string): string | undefined {
  const parts = parseStrictJson(text);
  if (parts.ok && Object.keys(parts.value ?? {}).some((name) => name !== 'token' && name !== 'signing_secret'))
    return 'has parts other than token and signing_secret; remove them';
  const { token, signing_secret: signing } = slackSecret(text);
  if (!token.startsWith('xox')) return 'is not a bot token of Slack: it begins with "xoxb-"';
  if (!SLACK_TOKEN.test(token)) return 'is not a whole bot token of Slack: copy it again';
  if (signing !== undefined && !SIGNING_SECRET.test(signing)) return 'the signing_secret is not one of Slack';
  return undefined;
}

const LOOPBACK = /^(?:localhost|127\.0\.0\.1|\[::1\])$/;

function workflowProblem(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && LOOPBACK.test(url.hostname));
  if (!url || !isSafe || url.hash !== '' || url.username !== '' || url.password !== '' || text.length > 2048)
    return 'is not the address of a workflow: it begins with "https://"';
  return undefined;
}

export const CHAT_KINDS = {
  slack: {
    settings: {
      channel: z
        .string()
        .regex(
          /^[CGDU][A-Z0-9]{5,30}$/,
          'write the id of the channel, such as "C0123456789"; it is shown at the end of its details',
        )
        .describe('Id of the channel, such as "C0123456789"; the app has to be in it.'),
      people: people(/^[UW][A-Z0-9]{5,30}$/, 'U0123456789'),
      server: server('https://slack.com'),
    },
    secret: 'needed',
    secretIs: 'the bot token ("xoxb-…"), or { token, signing_secret } with what verifies clicks',
    problem: slackProblem,
  },
  teams: {
    settings: {},
    secret: 'needed',
    secretIs: 'the address of the workflow ("https://…"), with which anybody can post',
    problem: workflowProblem,
  },
  telegram: {
    settings: {
      chat: z
        .string()
        .regex(
          /^(?:-?\d{1,20}|@[A-Za-z]\w{4,31})$/,
          'write the id of the chat, such as "-1001234567890", or "@name" of a public channel',
        )
        .describe('Id of the chat, such as "-1001234567890".'),
      thread: z.int().min(1).optional().describe('Id of the topic in a group that has topics.'),
      people: people(/^\d{1,20}$/, '123456789'),
      server: server('https://api.telegram.org'),
    },
    secret: 'needed',
    secretIs: 'the token of the bot ("123456:ABC…")',
    problem: (text: string) =>
      /^\d{1,20}:[A-Za-z0-9_-]{20,128}$/.test(text)
        ? undefined
        : 'is not the token of a bot: it looks like "123456:ABC…"',
  },
} as const;

/** Returns the people in the settings of a channel: e-mail addresses of owners by their ids in the chat. */
export const peopleIn = (settings: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> =>
  (settings.people as Record<string, string> | undefined) ?? {};
