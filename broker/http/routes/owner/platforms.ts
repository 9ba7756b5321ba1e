/** Platforms, as owners see them and switch them off. */
import { z } from 'zod';
import { type ReadPlatform, readPlatform, readPlatforms, switchPlatform } from '../../../admin/platforms.ts';
import type { Instant } from '../../../policy/facts.ts';
import { text } from '../../../wire/action.ts';
import { Connection, connectionShown } from '../../owned-connection.ts';
import { changingOwner } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

const Platform = z
  .object({
    platform_id: z.string(),
    name: z.string(),
    kind: z.enum(['rest', 'graphql', 'mcp']),
    base_url: z.url(),
    version: z.int().describe('one more with each change of the manifest'),
    suspended: z.boolean().describe('whether the organisation has switched it off'),
    created_at: z.iso.datetime(),
    connections: z.array(Connection),
  })
  .meta({ id: 'Platform' });

const WholePlatform = Platform.extend({
  manifest: z.record(z.string(), z.unknown()).describe('as it is in force; secrets by their names only'),
  scopes: z
    .array(z.object({ scope: z.string(), rules: z.array(z.string()) }))
    .describe('what each scope allows, such as "GET /items/*"'),
}).meta({ id: 'WholePlatform' });

const shown = (one: ReadPlatform, now: Instant): z.output<typeof Platform> => ({
  platform_id: one.platform_id,
  name: one.manifest.name ?? one.platform_id,
  kind: one.manifest.kind,
  base_url: one.manifest.base_url,
  version: one.version,
  suspended: one.suspended === 1,
  created_at: new Date(one.created_at).toISOString(),
  connections: one.connections.map((connection) => connectionShown(connection, one.manifest, now)),
});

const wholeShown = (one: ReadPlatform, now: Instant): z.output<typeof WholePlatform> => ({
  ...shown(one, now),
  manifest: one.manifest,
  scopes: Object.entries(one.manifest.scopes).map(([scope, rules]) => ({ scope, rules })),
});

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
    const now = broker.clock();
    const platforms = await readPlatforms(broker.store.db, who.organisationId);
    return json(200, { platforms: platforms.map((one) => shown(one, now)) });
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
    json(200, wholeShown(await readPlatform(broker.store.db, who.organisationId, platform), broker.clock())),
});

const SWITCHES = [
  {
    verb: 'suspend',
    suspended: true,
    summary: 'Stops all calls to a platform until it is resumed; whoever calls is told `platform_suspended`.',
  },
  { verb: 'resume', suspended: false, summary: 'Lets calls to a platform go on.' },
] as const;

const Reason = z.strictObject({ reason: text(500).optional().describe('why; on record') });

/** POST /owner/platforms/{platform}/suspend and /resume: the organisation's switch, in force at the very next decision. */
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
      return json(200, wholeShown(switched, services.broker.clock()));
    },
  }),
);
