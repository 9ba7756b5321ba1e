/** Further data of the notices page: the kinds of channels, and whether links can be opened on other devices. */
import { z } from 'zod';
import { CHANNEL_KINDS } from '../../../config-file/channels.ts';
import { describedKinds } from '../../../config-file/described-kinds.ts';
import { reachWarnings } from '../../../reach.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';
import { pushRoutes } from './push-subscriptions.ts';

/** GET /owner/channel-kinds */
export const channelKinds = route({
  method: 'GET',
  path: '/owner/channel-kinds',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.channels.kinds',
  summary: 'The kinds of channels, with the settings that each takes as JSON Schema.',
  answers: {
    200: {
      description: 'All of them.',
      schema: z.object({
        kinds: z.array(
          z.object({
            kind: z.enum(CHANNEL_KINDS),
            settings: z.record(z.string(), z.unknown()).describe('JSON Schema of an object'),
            secret: z
              .enum(['made', 'needed', 'optional'])
              .describe('whether it has to have one; made: the broker makes one where none is given'),
            secret_is: z.string().describe('what the secret is'),
          }),
        ),
      }),
    },
  },
  errors: [],
  handle: async () =>
    json(200, {
      kinds: describedKinds().map(({ kind, settings, secret, secretIs }) => ({
        kind,
        settings,
        secret,
        secret_is: secretIs,
      })),
    }),
});

/** GET /owner/reach */
export const ownerReach = route({
  method: 'GET',
  path: '/owner/reach',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.reach',
  summary: 'Where links lead, and why a phone might not be able to open them.',
  answers: {
    200: {
      description: 'What the broker can tell from its own address and from who came; it asks nobody.',
      schema: z.object({
        base_url: z.url(),
        warnings: z.array(
          z.object({
            code: z.enum(['loopback', 'private', 'plain_http', 'nobody_from_elsewhere']),
            text: z.string(),
          }),
        ),
      }),
    },
  },
  errors: [],
  handle: async ({ services: { broker } }) =>
    json(200, { base_url: broker.baseUrl, warnings: await reachWarnings(broker) }),
});

export const noticeRoutes = [channelKinds, ownerReach, ...pushRoutes];
