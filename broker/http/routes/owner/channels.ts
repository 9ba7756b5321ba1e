/** Channels on which owners are notified. Their secrets are write-only. */
import { z } from 'zod';
import {
  changeChannelSettings,
  createChannel,
  type ReadChannel,
  readChannels,
  removeChannel as remove,
  testChannel,
} from '../../../admin/channels.ts';
import type { Broker } from '../../../broker.ts';
import { CHANNEL_KINDS, ChannelName, ChannelRules, channelForm } from '../../../config-file/channels.ts';
import { peopleIn } from '../../../config-file/chat-channels.ts';
import { unreadableText } from '../../../config-file/stored-settings.ts';
import { storedUuid } from '../../../crypto/ids.ts';
import { clicksUrl } from '../../../notify/buttons.ts';
import { changingOwner } from '../../owner-change.ts';
import { MadeSecret, ReceiverSecret, TestAnswers } from '../../receiver-schemas.ts';
import { instant, json } from '../../reply.ts';
import { route } from '../../route.ts';

const Channel = z
  .object({
    id: z.guid(),
    name: z.string(),
    kind: z.enum(CHANNEL_KINDS),
    settings: z.record(z.string(), z.unknown()).describe('where it leads, by kind; never the secret'),
    rules: ChannelRules.describe('which notices are sent to it, and when'),
    has_secret: z.boolean(),
    secret_from: z.string().nullable().describe('what governance.yaml calls the secret, such as "env:NTFY_TOKEN"'),
    clicks_url: z
      .url()
      .nullable()
      .describe(
        'where Slack (Interactivity, Request URL) or Telegram tells of clicks on buttons; null: there are none',
      ),
    status: z
      .enum(['active', 'failing', 'gone', 'unreadable'])
      .describe(
        'failing: it did not accept the last message, which is retried; gone: the service reported that it no longer exists, and nothing is sent until it is changed; unreadable: its stored settings or rules cannot be read, are empty here, and nothing is sent until they are set again',
      ),
    last_ok_at: z.iso.datetime().nullable().describe('when it last accepted a message, accurate to a minute'),
    last_error: z
      .string()
      .nullable()
      .describe(
        'why the last message could not be delivered (of an active channel: to some of the recipients), or what to do about an unreadable channel, as a sentence',
      ),
    origin: z.enum(['governance', 'owner']),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Channel' });

const shown = (
  broker: Pick<Broker, 'baseUrl'>,
  { channel, settings, rules, unreadable }: ReadChannel,
): z.output<typeof Channel> => ({
  id: channel.id,
  name: channel.name,
  kind: channel.kind as (typeof CHANNEL_KINDS)[number],
  settings,
  rules,
  has_secret: channel.secret !== null,
  secret_from: channel.secret_reference,
  clicks_url: Object.keys(peopleIn(settings)).length === 0 ? null : clicksUrl(broker, channel),
  status: unreadable === undefined ? channel.status : 'unreadable',
  last_ok_at: instant(channel.last_ok_at),
  last_error: unreadable === undefined ? channel.last_error : unreadableText(unreadable, 'the channel'),
  origin: channel.origin,
  created_at: new Date(channel.created_at).toISOString(),
});

/** GET /owner/channels */
export const ownerChannels = route({
  method: 'GET',
  path: '/owner/channels',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.channels.list',
  summary: 'The channels for notices to owners; never a secret.',
  answers: { 200: { description: 'All of them, by name.', schema: z.object({ channels: z.array(Channel) }) } },
  errors: [],
  handle: async ({ services: { broker }, who }) =>
    json(200, { channels: (await readChannels(broker.store.db, who.organisationId)).map((one) => shown(broker, one)) }),
});

/** POST /owner/channels */
export const addChannel = route({
  method: 'POST',
  path: '/owner/channels',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.channels.create',
  summary: 'Adds a channel for notices to owners.',
  body: channelForm({
    name: ChannelName,
    secret: ReceiverSecret.describe(
      'sealed and never shown again; one text, or by name where it has parts (slack: token, signing_secret); left out for a webhook, the broker makes one',
    ),
  }),
  secretBody: true,
  answers: {
    201: {
      description: 'The channel.',
      schema: Channel.extend({
        secret: MadeSecret,
      }).meta({ id: 'NewChannel' }),
    },
  },
  errors: ['invalid_request', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { name, secret, ...given } = context.body;
    const created = await createChannel(context.services, changingOwner(context), { name, given, secret });
    return json(201, {
      ...shown(context.services.broker, created),
      ...(created.made && { secret: created.made.reveal() }),
    });
  },
});

const params = { id: z.guid().describe('the id of the channel') };

/** POST /owner/channels/{id}/settings */
export const changeChannel = route({
  method: 'POST',
  path: '/owner/channels/{id}/settings',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.channels.settings',
  summary: 'Replaces the settings and rules of a channel; a channel that was `gone` is tried again.',
  params,
  body: channelForm({ secret: ReceiverSecret.describe('left out, the secret stays') }),
  secretBody: true,
  answers: { 200: { description: 'The channel as it is now.', schema: Channel } },
  errors: ['invalid_request', 'not_found', 'audit_unavailable'],
  handle: async (context) => {
    const { secret, ...given } = context.body;
    const command = { id: storedUuid(context.params.id), given, secret };
    return json(
      200,
      shown(context.services.broker, await changeChannelSettings(context.services, changingOwner(context), command)),
    );
  },
});

/** DELETE /owner/channels/{id} */
export const removeChannel = route({
  method: 'DELETE',
  path: '/owner/channels/{id}',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.channels.remove',
  summary: 'Removes a channel with its secret and its unsent notices.',
  params,
  answers: { 200: { description: 'It is gone.', schema: z.object({ id: z.guid(), removed: z.literal(true) }) } },
  errors: ['not_found', 'audit_unavailable'],
  handle: async (context) => {
    const id = storedUuid(context.params.id);
    await remove(context.services, changingOwner(context), id);
    return json(200, { id, removed: true });
  },
});

/** POST /owner/channels/{id}/test */
export const tryChannel = route({
  method: 'POST',
  path: '/owner/channels/{id}/test',
  auth: 'owner',
  role: 'admin',
  limit: { name: 'channel-tests', perMinute: 20, per: 'address' },
  capability: 'owner.channels.test',
  summary: 'Sends a test notice now, and returns the result.',
  params,
  body: z.strictObject({}),
  bodyOptional: true,
  answers: TestAnswers,
  errors: ['not_found', 'rate_limited', 'audit_unavailable'],
  handle: async (context) =>
    json(200, await testChannel(context.services, changingOwner(context), storedUuid(context.params.id))),
});

export const channelRoutes = [ownerChannels, addChannel, changeChannel, removeChannel, tryChannel];
