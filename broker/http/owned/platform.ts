/** The owners' view of a platform. */
import { z } from 'zod';
import { hasNewerManifest } from '../../admin/platforms/newest-manifest.ts';
import type { ReadPlatform } from '../../admin/platforms/platforms.ts';
import { BUILTIN_NAMES } from '../../platforms/builtin-names.ts';
import { builtinOf, presetsOf } from '../../platforms/presets.ts';
import { SecretParts, secretPartsShown } from '../secret-parts-shown.ts';
import { Connection, connectionShown, type Shower } from './connection.ts';

export const Platform = z
  .object({
    platform_id: z.string(),
    name: z.string(),
    kind: z.enum(['rest', 'graphql', 'mcp']),
    base_url: z.url(),
    builtin: z
      .enum(BUILTIN_NAMES)
      .nullable()
      .describe('the built-in platform that it is derived from, which has most of its scopes; null: none'),
    update_available: z
      .boolean()
      .describe('whether this release brings another manifest of the built-in platform, for `POST …/update`'),
    version: z.int().describe('increases with each change of the manifest'),
    suspended: z.boolean().describe('whether the organisation has switched it off'),
    created_at: z.iso.datetime(),
    connections: z.array(Connection),
  })
  .meta({ id: 'Platform' });

export const WholePlatform = Platform.extend({
  manifest: z.record(z.string(), z.unknown()).describe('as it is in force; secrets by their names only'),
  scopes: z
    .array(z.object({ scope: z.string(), rules: z.array(z.string()) }))
    .describe('what each scope allows, such as "GET /items/*"'),
  presets: z
    .array(z.object({ name: z.string(), scopes: z.array(z.string()) }))
    .describe('sets of scopes that are granted together, such as "read", with what each contains now'),
  secret_parts: SecretParts,
}).meta({ id: 'WholePlatform' });

export const platformShown = (one: ReadPlatform, broker: Shower): z.output<typeof Platform> => ({
  platform_id: one.platform_id,
  name: one.manifest.name ?? one.platform_id,
  kind: one.manifest.kind,
  base_url: one.manifest.base_url,
  builtin: builtinOf(one.manifest) ?? null,
  update_available: hasNewerManifest(one),
  version: one.version,
  suspended: one.suspended === 1,
  created_at: new Date(one.created_at).toISOString(),
  connections: one.connections.map((connection) => connectionShown(connection, one.manifest, broker)),
});

export const wholePlatformShown = (one: ReadPlatform, broker: Shower): z.output<typeof WholePlatform> => ({
  ...platformShown(one, broker),
  manifest: one.manifest,
  scopes: Object.entries(one.manifest.scopes).map(([scope, rules]) => ({ scope, rules })),
  presets: presetsOf(one.manifest),
  secret_parts: secretPartsShown(one.manifest.auth),
});
