/** An owner's own devices that get Web Push notifications. */
import { z } from 'zod';
import {
  addSubscription,
  changeSubscription,
  type ReadSubscription,
  readSubscriptions,
  removeSubscription,
  testSubscription,
} from '../../../admin/push-subscriptions.ts';
import { ChannelRules } from '../../../config-file/channels.ts';
import { unreadableText } from '../../../config-file/stored-settings.ts';
import { storedUuid } from '../../../crypto/ids.ts';
import { pushKey } from '../../../push-key.ts';
import { changingOwner } from '../../owner-change.ts';
import { instant, json } from '../../reply.ts';
import { route } from '../../route.ts';
import { DeviceName } from '../../webauthn-json.ts';

const Subscription = z
  .object({
    id: z.guid(),
    device_name: z.string(),
    service: z.string().describe('host of the push service'),
    endpoint_hash: z.string().describe('SHA-256 of the endpoint in hex, by which a browser knows itself'),
    rules: ChannelRules.describe('which notices are sent to it, and when'),
    status: z
      .enum(['active', 'failing', 'gone', 'unreadable'])
      .describe(
        'unreadable: its stored rules cannot be read, are empty here, and nothing is sent until they are set again',
      ),
    last_ok_at: z.iso
      .datetime()
      .nullable()
      .describe('when the push service last accepted a message, accurate to a minute'),
    last_error: z
      .string()
      .nullable()
      .describe('why the last message could not be delivered, or what to do about an unreadable device, as a sentence'),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'PushDevice' });

const shown = ({
  channel,
  device,
  service,
  endpointHash,
  rules,
  unreadable,
}: ReadSubscription): z.output<typeof Subscription> => ({
  id: channel.id,
  device_name: device,
  service,
  endpoint_hash: endpointHash,
  rules,
  status: unreadable === undefined ? channel.status : 'unreadable',
  last_ok_at: instant(channel.last_ok_at),
  last_error: unreadable === undefined ? channel.last_error : unreadableText(unreadable, 'the device'),
  created_at: new Date(channel.created_at).toISOString(),
});

/** GET /owner/push-subscriptions */
export const pushDevices = route({
  method: 'GET',
  path: '/owner/push-subscriptions',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.push.list',
  summary: "The owner's own devices with Web Push, and the key for subscribing a browser.",
  answers: {
    200: {
      description: 'All of them, oldest first.',
      schema: z.object({
        public_key: z.string().describe('`applicationServerKey` (VAPID), in base64url'),
        subscriptions: z.array(Subscription),
      }),
    },
  },
  errors: [],
  handle: async ({ services: { broker }, who }) =>
    json(200, {
      public_key: (await pushKey(broker)).publicKey,
      subscriptions: (await readSubscriptions(broker.store.db, who.owner)).map(shown),
    }),
});

/** POST /owner/push-subscriptions */
export const addPushDevice = route({
  method: 'POST',
  path: '/owner/push-subscriptions',
  auth: 'owner',
  role: 'viewer',
  limit: { name: 'push-devices', perMinute: 30, per: 'address' },
  capability: 'owner.push.create',
  summary: 'Adds the browser that asks to the devices of its owner; the same browser again replaces itself.',
  body: z.strictObject({
    endpoint: z.url('must be the address that PushSubscription.toJSON() gives').max(2048),
    expirationTime: z.number().nullable().optional().describe('taken, and not used'),
    keys: z
      .strictObject({ p256dh: z.string().max(128), auth: z.string().max(64) })
      .describe('sealed, never shown again'),
    device_name: DeviceName,
    rules: ChannelRules.default({}).describe('which notices are sent to it, and when'),
  }),
  secretBody: true,
  answers: { 201: { description: 'The device.', schema: Subscription } },
  errors: ['invalid_request', 'conflict', 'rate_limited', 'audit_unavailable'],
  handle: async (context) => {
    const { endpoint, keys, device_name: device, rules } = context.body;
    const added = await addSubscription(context.services, changingOwner(context), { endpoint, keys, device, rules });
    return json(201, shown(added));
  },
});

const params = { id: z.guid().describe('the id of the device') };

/** POST /owner/push-subscriptions/{id}/settings */
export const changePushDevice = route({
  method: 'POST',
  path: '/owner/push-subscriptions/{id}/settings',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.push.settings',
  summary: "Replaces the rules of one of the owner's devices: which notices it gets, and when.",
  params,
  body: ChannelRules,
  answers: { 200: { description: 'The device as it is now.', schema: Subscription } },
  errors: ['invalid_request', 'not_found', 'audit_unavailable'],
  handle: async (context) => {
    const command = { id: storedUuid(context.params.id), rules: context.body };
    return json(200, shown(await changeSubscription(context.services, changingOwner(context), command)));
  },
});

/** POST /owner/push-subscriptions/{id}/test */
export const tryPushDevice = route({
  method: 'POST',
  path: '/owner/push-subscriptions/{id}/test',
  auth: 'owner',
  role: 'viewer',
  limit: { name: 'channel-tests', perMinute: 20, per: 'address' },
  capability: 'owner.push.test',
  summary: "Sends a test notice to one of the owner's devices now, and returns the result.",
  params,
  body: z.strictObject({}),
  bodyOptional: true,
  answers: {
    200: { description: 'The result, as a sentence.', schema: z.object({ ok: z.boolean(), detail: z.string() }) },
  },
  errors: ['not_found', 'rate_limited', 'audit_unavailable'],
  handle: async (context) =>
    json(200, await testSubscription(context.services, changingOwner(context), storedUuid(context.params.id))),
});

/** DELETE /owner/push-subscriptions/{id} */
export const removePushDevice = route({
  method: 'DELETE',
  path: '/owner/push-subscriptions/{id}',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.push.remove',
  summary: "Removes one of the owner's devices: nothing more is sent to it.",
  params,
  answers: { 200: { description: 'It is gone.', schema: z.object({ id: z.guid(), removed: z.literal(true) }) } },
  errors: ['not_found', 'audit_unavailable'],
  handle: async (context) => {
    const id = storedUuid(context.params.id);
    await removeSubscription(context.services, changingOwner(context), id);
    return json(200, { id, removed: true });
  },
});

export const pushRoutes = [pushDevices, addPushDevice, changePushDevice, tryPushDevice, removePushDevice];
