/**
 * Channels on which owners are notified, in a governance file and the owner API: settings by kind, the secret apart, and the rules that
 * all kinds have. A new kind is one entry in `KINDS`, and one file in broker/notify that sends.
 */
import { z } from 'zod';
import { PlatformUrl } from '../platforms/fields.ts';
import { NOTICE_EVENTS } from '../store/tables/notices.ts';
import { CHAT_KINDS } from './chat-channels.ts';
import { name } from './name.ts';
import { SecretInParts } from './secret-in-parts.ts';

export const ChannelName = name('Name of a channel.');

const TIME = /^([01]\d|2[0-3]):[0-5]\d$/;
export const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;

const isZone = (zone: string): boolean => {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone });
    return true;
  } catch {
    return false;
  }
};

const Quiet = z
  .strictObject({
    from: z.string().regex(TIME, 'write a time of day such as "22:00"').describe('When it begins, such as "22:00".'),
    to: z
      .string()
      .regex(TIME, 'write a time of day such as "07:00"')
      .describe('When it ends; the next day where that is not later than the beginning.'),
    zone: z
      .string()
      .max(64)
      .refine(isZone, 'is not a time zone; write one such as "Europe/Berlin"')
      .describe('Time zone of both, such as "Europe/Berlin".'),
    days: z
      .array(z.enum(DAYS))
      .min(1, 'is empty; leave it out for every day')
      .max(7)
      .optional()
      .describe('Days on which it begins. Absent: every day.'),
  })
  .describe('Hours in which nothing is sent: what still waits when they end is sent then.');

const names = (what: string) =>
  z.array(z.string().min(1).max(128)).min(1, 'is empty').max(100).optional().describe(what);

/** Rules that every kind has. */
const RULES = {
  events: z
    .array(z.enum(NOTICE_EVENTS))
    .min(1, 'is empty')
    .max(NOTICE_EVENTS.length)
    .optional()
    .describe('Events that are sent. Absent: all.'),
  agents: names('Names or ids of agents, with their children; "*" is any text. Absent: all, and what is of no agent.'),
  platforms: names('Platform ids; "*" is any text. Absent: all, and what is of no platform.'),
  quiet: Quiet.optional(),
  remind_minutes: z
    .int()
    .min(1)
    .max(30 * 24 * 60)
    .optional()
    .describe('How many minutes before the expiry a reminder is sent. Absent: no reminder.'),
};
export const ChannelRules = z.strictObject(RULES);
export type ChannelRules = z.infer<typeof ChannelRules>;
export type QuietHours = z.infer<typeof Quiet>;

/** `secret`: whether a secret is required; `made`: a missing one is generated. `problem`: returns what is wrong with a secret. */
type Kind = {
  settings: Record<string, z.ZodType>;
  secret: 'made' | 'needed' | 'optional';
  secretIs: string;
  problem?(secret: string): string | undefined;
  /** Returns what is wrong with the combination of settings that are each valid. */
  check?(settings: Record<string, unknown>): string | undefined;
};

const WEBHOOK_SECRET = /^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/;

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3})$/;
const Email = z.email('write an e-mail address such as "ann@acme.example"').max(254);
const Address = z
  .string()
  .min(1)
  .max(254)
  .regex(/^\P{C}+$/u, 'write it without control characters');

export const KINDS = {
  webhook: {
    settings: { url: PlatformUrl.describe('Where notices are posted to; without a query.').meta({ format: 'uri' }) },
    secret: 'made',
    secretIs: 'the key that signs ("whsec_…", Standard Webhooks)',
    problem: (secret: string) =>
      WEBHOOK_SECRET.test(secret) ? undefined : 'write "whsec_" and 24 to 64 random bytes in base64',
  },
  ntfy: {
    settings: {
      server: PlatformUrl.meta({ format: 'uri' })
        .optional()
        .describe('Address of the server. Absent: https://ntfy.sh.'),
      topic: z
        .string()
        .regex(/^[-_A-Za-z0-9]{1,64}$/, 'write 1 to 64 letters, digits, "-" or "_"')
        .describe('The topic. On a server without access tokens, anybody who knows the topic can read the notices.'),
    },
    secret: 'optional',
    secretIs: 'the access token ("tk_…")',
    problem: (secret: string) => (/^[\x21-\x7e]{1,256}$/.test(secret) ? undefined : 'is not an access token'),
  },
  email: {
    settings: {
      host: z
        .string()
        .max(253)
        .regex(/^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/, 'write the name of a host in lower case')
        .describe('Name of the mail server.'),
      port: z
        .int()
        .min(1)
        .max(65_535)
        .optional()
        .describe(
          'Absent: 587, or 465 with security tls. Others than 465, 587, 2525 and 25 the operator has to allow.',
        ),
      security: z
        .enum(['starttls', 'tls', 'none'])
        .optional()
        .describe('How the connection is encrypted. none: for a mail server on this machine only. Absent: starttls.'),
      user: Address.optional().describe('User name at the mail server; the secret is its password.'),
      from: Email.describe('The sender.'),
      to: z.array(Email).min(1, 'is empty').max(20).describe('Who gets the mails.'),
    },
    secret: 'optional',
    secretIs: 'the password of the user',
    check: ({ security, host }: Record<string, unknown>) =>
      security === 'none' && !LOOPBACK.test(String(host))
        ? 'security: "none" is accepted for this machine only (localhost, 127.0.0.1); write "starttls" or "tls"'
        : undefined,
  },
  ...CHAT_KINDS,
} as const satisfies Record<string, Kind>;

export type ChannelKindName = keyof typeof KINDS;
export const CHANNEL_KINDS = Object.keys(KINDS) as [ChannelKindName, ...ChannelKindName[]];

/** Returns what is wrong with a secret for this kind, in words. */
export function secretProblem(kind: ChannelKindName, secret: string): string | undefined {
  const { problem }: Kind = KINDS[kind];
  return problem?.(secret);
}

/** Returns what is wrong with the combination of a channel's settings, or with its rules, in words. */
export function channelProblem({
  kind,
  settings,
  rules,
}: {
  kind: ChannelKindName;
  settings: Record<string, unknown>;
  rules: ChannelRules;
}): string | undefined {
  const { check }: Kind = KINDS[kind];
  return check?.(settings) ?? rulesProblem(rules);
}

/** Returns what is wrong with rules, in words. Not part of their schema, which also reads the stored ones. */
export function rulesProblem({ quiet }: ChannelRules): string | undefined {
  // Quiet hours that end later than they begin leave at least a minute of each day; these do only where a day is left out.
  const isAlways = quiet?.from === quiet?.to && new Set(quiet?.days ?? DAYS).size === DAYS.length;
  return quiet && isAlways
    ? `quiet: ${quiet.from} to ${quiet.to} on all days are all hours, so nothing would ever be sent; leave some hours or days free`
    : undefined;
}

/** Returns the schema of a channel. `more`: members in addition to kind, settings and rules. */
export const channelForm = <More extends z.ZodRawShape>(more: More) =>
  z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('webhook'), ...KINDS.webhook.settings, ...RULES, ...more }),
    z.strictObject({ kind: z.literal('ntfy'), ...KINDS.ntfy.settings, ...RULES, ...more }),
    z.strictObject({ kind: z.literal('email'), ...KINDS.email.settings, ...RULES, ...more }),
    z.strictObject({ kind: z.literal('slack'), ...KINDS.slack.settings, ...RULES, ...more }),
    z.strictObject({ kind: z.literal('teams'), ...KINDS.teams.settings, ...RULES, ...more }),
    z.strictObject({ kind: z.literal('telegram'), ...KINDS.telegram.settings, ...RULES, ...more }),
  ]);

/** Schema of a channel in a governance file. */
export const ChannelInFile = channelForm({
  secret: SecretInParts.optional().describe(
    'Where the secret is found: the key that signs (webhook), the access token (ntfy), the password (email), the bot token (slack: with signing_secret as { token, signing_secret }; telegram), the address of the workflow (teams). Without it the one that the channel has stays.',
  ),
});
export type ChannelEntry = z.infer<typeof ChannelInFile>;

/**
 * Kinds that belong to one person, each created by a browser: they are never in a governance file, and their secret is everything that the browser sent.
 */
const PERSONAL_KINDS = {
  web_push: {
    settings: {
      device: z.string().describe('What the owner calls the device.'),
      service: z.string().describe('Host of the push service.'),
    },
  },
} as const;
export type AnyKindName = ChannelKindName | keyof typeof PERSONAL_KINDS;

/** The settings of each kind, as they are stored. */
export const CHANNEL_FORMS: Readonly<Record<string, z.ZodObject>> = Object.fromEntries(
  Object.entries({ ...KINDS, ...PERSONAL_KINDS }).map(([kind, { settings }]) => [kind, z.strictObject(settings)]),
);

/** Splits a channel into its parts: every member is a setting that is neither the kind, a rule, nor one of `more`. */
export function splitChannel(channel: { kind: ChannelKindName } & Record<string, unknown>): {
  kind: ChannelKindName;
  settings: Record<string, unknown>;
  rules: ChannelRules;
} {
  const entries = Object.entries(channel).filter(([, value]) => value !== undefined);
  const settings = entries.filter(([key]) => Object.hasOwn(KINDS[channel.kind].settings, key));
  const rules = entries.filter(([key]) => Object.hasOwn(RULES, key));
  return {
    kind: channel.kind,
    settings: Object.fromEntries(settings),
    rules: Object.fromEntries(rules) as ChannelRules,
  };
}
