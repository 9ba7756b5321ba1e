/** Platforms, as owners see them and switch them off. */
import { z } from 'zod';
import type { Manifest } from '../../../platforms/manifest.ts';
import type { Instant } from '../../../policy/facts.ts';
import { listConnections } from '../../../store/connections.ts';
import { listPlatforms, switchPlatform } from '../../../store/platforms.ts';
import type { ConnectionTable } from '../../../store/schema.ts';
import type { Db } from '../../../store/store.ts';
import { text } from '../../../wire/action.ts';
import { Refusal } from '../../errors.ts';
import { Connection, connectionShown } from '../../owned-connection.ts';
import { ownerChange } from '../../owner-change.ts';
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

type Stored = Awaited<ReturnType<typeof listPlatforms>>[number];

function shown(stored: Stored, connections: readonly ConnectionTable[], now: Instant): z.output<typeof Platform> {
  const manifest = JSON.parse(stored.manifest) as Manifest;
  const { kind, name, base_url } = manifest;
  return {
    platform_id: stored.platform_id,
    name: name ?? stored.platform_id,
    kind,
    base_url,
    version: stored.version,
    suspended: stored.suspended === 1,
    created_at: new Date(stored.created_at).toISOString(),
    connections: connections
      .filter((one) => one.platform_id === stored.platform_id)
      .map((one) => connectionShown(one, manifest, now)),
  };
}

async function loadWhole(db: Db, organisationId: string, platformId: string, now: Instant) {
  const stored = (await listPlatforms(db, organisationId)).find((one) => one.platform_id === platformId);
  if (!stored) throw new Refusal('not_found', 'The organisation has no such platform.');
  const manifest = JSON.parse(stored.manifest) as Manifest;
  const scopes = Object.entries(manifest.scopes).map(([scope, rules]) => ({ scope, rules }));
  return { ...shown(stored, await listConnections(db, organisationId), now), manifest, scopes };
}

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
  handle: async ({ services: { broker }, who: { organisationId } }) => {
    const { db } = broker.store;
    const [platforms, connections] = await Promise.all([
      listPlatforms(db, organisationId),
      listConnections(db, organisationId),
    ]);
    return json(200, { platforms: platforms.map((one) => shown(one, connections, broker.clock())) });
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
    json(200, await loadWhole(broker.store.db, who.organisationId, platform, broker.clock())),
});

const SWITCHES = [
  {
    verb: 'suspend',
    suspended: true,
    reason: 'platform_suspended',
    summary: 'Stops all calls to a platform until it is resumed; whoever calls is told `platform_suspended`.',
  },
  { verb: 'resume', suspended: false, reason: 'platform_resumed', summary: 'Lets calls to a platform go on.' },
] as const;

const Reason = z.strictObject({ reason: text(500).optional().describe('why; on record') });

/** POST /owner/platforms/{platform}/suspend and /resume: the organisation's switch, in force at the very next decision. */
export const switchPlatforms = SWITCHES.map(({ verb, suspended, reason, summary }) =>
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
      const { who, body, params } = context;
      const platformId = params.platform;
      // Not on record what is none: a row names platforms that there are.
      await loadWhole(
        context.services.broker.store.db,
        who.organisationId,
        platformId,
        context.services.broker.clock(),
      );
      const change = { reason, detail: body.reason ?? null, platform: platformId };
      const changed = await ownerChange(context, change, async (db) => {
        const moved = await switchPlatform(db, { organisationId: who.organisationId, platformId }, { suspended });
        const now = await loadWhole(db, who.organisationId, platformId, context.services.broker.clock());
        if (!moved)
          throw new Refusal('conflict', `This platform is ${suspended ? 'suspended already' : 'not suspended'}.`);
        return now;
      });
      return json(200, changed);
    },
  }),
);
