/** Platforms, for owners: view, change and switch off. */
import { z } from 'zod';
import {
  type ChangedPlatform as Changed,
  changePlatform as change,
  updatePlatform as update,
} from '../../../admin/platforms/change-platform.ts';
import { makePlatform as make, removePlatform as remove } from '../../../admin/platforms/make-platform.ts';
import { readPlatform, readPlatforms, switchPlatform } from '../../../admin/platforms/platforms.ts';
import { Secret } from '../../../crypto/secret.ts';
import { PlatformId } from '../../../platforms/manifest-fields.ts';
import { text } from '../../../wire/action.ts';
import type { Shower } from '../../owned/connection.ts';
import { Platform, platformShown, WholePlatform, wholePlatformShown } from '../../owned/platform.ts';
import { changingOwner } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

/** GET /owner/platforms */
export const ownerPlatforms = route({
  method: 'GET',
  path: '/owner/platforms',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.platforms.list',
  summary: "The organisation's platforms.",
  answers: {
    200: {
      description: 'All of them, by id, with their connections.',
      schema: z.object({ platforms: z.array(Platform) }),
    },
  },
  errors: [],
  handle: async ({ services: { broker }, who }) => {
    const platforms = await readPlatforms(broker.store.db, who.organisationId);
    return json(200, { platforms: platforms.map((one) => platformShown(one, broker)) });
  },
});

const params = { platform: z.string().describe('the id by which agents name it') };

/** GET /owner/platforms/{platform} */
export const ownerPlatform = route({
  method: 'GET',
  path: '/owner/platforms/{platform}',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.platforms.read',
  summary: 'One platform with its manifest, its scopes and their rules, and its connections.',
  params,
  answers: { 200: { description: 'The platform.', schema: WholePlatform } },
  errors: ['not_found'],
  handle: async ({ services: { broker }, who, params: { platform } }) =>
    json(200, wholePlatformShown(await readPlatform(broker.store.db, who.organisationId, platform), broker)),
});

const Entry = z.record(z.string(), z.unknown());
const PlatformSecret = text(64 * 1024).transform((value) => new Secret(value));
const PlatformSecrets = z
  .strictObject({
    client_id: PlatformSecret.optional(),
    client_secret: PlatformSecret.optional(),
    private_key: PlatformSecret.optional(),
  })
  .optional()
  .describe('the values of what the `auth` of the entry references; sealed, and never shown again');

/** POST /owner/platforms */
export const makePlatform = route({
  method: 'POST',
  path: '/owner/platforms',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.platforms.create',
  summary: 'Makes a platform, as a governance file does under `platforms`; one that is there already is not changed.',
  body: z.strictObject({
    platform: PlatformId,
    entry: Entry.describe('as under `platforms` of a governance file, such as `{ "use": "github" }`'),
    secrets: PlatformSecrets,
  }),
  secretBody: true,
  answers: { 201: { description: 'The platform.', schema: WholePlatform } },
  errors: ['invalid_request', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, body } = context;
    const { platform: platformId, entry, secrets = {} } = body;
    const made = await make(services, changingOwner(context), { platformId, entry, secrets });
    return json(201, wholePlatformShown(made, services.broker));
  },
});

const ChangedPlatform = WholePlatform.extend({
  changes: z
    .array(z.string())
    .describe('lines such as "base_url: https://a.example → https://b.example"; never a secret'),
  warnings: z.array(z.string()).describe('what follows, such as for grants and credentials that are there'),
}).meta({ id: 'PlatformChanged' });

/** Shared by the two ways to give a platform another manifest. `seen`: what the version in the body refers to. */
const changing = (seen: string) => ({
  version: z.int().min(1).describe(`${seen}; when another is in force by now, nothing is changed`),
  dry_run: z.boolean().default(false).describe('whether to say only what it would change'),
});
const changed = {
  answers: { 200: { description: 'The platform as it is now, and what is another.', schema: ChangedPlatform } },
  errors: ['invalid_request', 'not_found', 'conflict', 'audit_unavailable'],
} as const;
const changedShown = ({ platform, changes, warnings }: Changed, broker: Shower) =>
  json(200, { ...wholePlatformShown(platform, broker), changes, warnings });

/** POST /owner/platforms/{platform}: in force from the next decision. */
export const changePlatform = route({
  method: 'POST',
  path: '/owner/platforms/{platform}',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.platforms.change',
  summary: 'Replaces the manifest of a platform that is not built in.',
  params,
  body: z.strictObject({
    entry: Entry.describe('the complete section `platforms` of a governance file'),
    secrets: PlatformSecrets.describe(
      'the values of what the `auth` of the entry references, as far as they are new or others; sealed, and never shown again',
    ),
    ...changing('the version that was changed to this one'),
  }),
  secretBody: true,
  ...changed,
  handle: async (context) => {
    const { services, params, body } = context;
    const { entry, secrets = {}, version: seen, dry_run: tries } = body;
    const command = { platformId: params.platform, entry, secrets, seen, tries };
    return changedShown(await change(services, changingOwner(context), command), services.broker);
  },
});

/** POST /owner/platforms/{platform}/update: in force from the next decision. */
export const updatePlatform = route({
  method: 'POST',
  path: '/owner/platforms/{platform}/update',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.platforms.update',
  summary: 'Updates a built-in platform to the manifest of this release, and keeps deviations.',
  params,
  body: z.strictObject(changing('the version that was shown')),
  ...changed,
  handle: async (context) => {
    const { services, params, body } = context;
    const asked = { platformId: params.platform, seen: body.version, tries: body.dry_run };
    return changedShown(await update(services, changingOwner(context), asked), services.broker);
  },
});

/** DELETE /owner/platforms/{platform} */
export const removePlatform = route({
  method: 'DELETE',
  path: '/owner/platforms/{platform}',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.platforms.remove',
  summary: 'Removes a platform that has no connections, and no grants of agents that are not revoked.',
  params,
  answers: {
    200: { description: 'It is gone.', schema: z.object({ platform_id: z.string(), removed: z.literal(true) }) },
  },
  errors: ['not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const platform_id = context.params.platform;
    await remove(context.services, changingOwner(context), platform_id);
    return json(200, { platform_id, removed: true });
  },
});

const SWITCHES = [
  {
    verb: 'suspend',
    suspended: true,
    summary: 'Stops all calls to a platform until it is resumed; calls return `platform_suspended`.',
  },
  { verb: 'resume', suspended: false, summary: 'Resumes calls to a platform.' },
] as const;

const Reason = z.strictObject({ reason: text(500).optional().describe('why; on record') });

/** POST /owner/platforms/{platform}/suspend and /resume: the organisation's switch, in force from the next decision. */
export const switchPlatforms = SWITCHES.map(({ verb, suspended, summary }) =>
  route({
    method: 'POST',
    path: `/owner/platforms/{platform}/${verb}`,
    auth: 'owner',
    role: 'admin',
    capability: `owner.platforms.${verb}`,
    summary,
    params,
    body: Reason,
    bodyOptional: true,
    answers: { 200: { description: 'The platform as it is now.', schema: WholePlatform } },
    errors: ['invalid_request', 'not_found', 'conflict', 'audit_unavailable'],
    handle: async (context) => {
      const { services, params, body } = context;
      const command = { platformId: params.platform, suspended, detail: body.reason ?? null };
      const switched = await switchPlatform(services, changingOwner(context), command);
      return json(200, wholePlatformShown(switched, services.broker));
    },
  }),
);

/** Lists these routes. */
export const platformRoutes = [
  ownerPlatforms,
  makePlatform,
  ownerPlatform,
  changePlatform,
  updatePlatform,
  removePlatform,
  ...switchPlatforms,
];
