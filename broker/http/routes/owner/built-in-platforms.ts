/** The built-in platforms, for owners who connect one. */
import { z } from 'zod';
import { permissionsFor, registrationForm } from '../../../platforms/app-permissions.ts';
import { BUILTIN_PLATFORMS } from '../../../platforms/builtin.ts';
import { BUILTIN_NAMES, type BuiltinName } from '../../../platforms/builtin-names.ts';
import {
  authFor,
  CONNECT_METHODS,
  connectMethodsOf,
  consentFor,
  credentialOf,
  defaultId,
  isBuiltin,
  locatePlatform,
  needsAddress,
  registrationOf,
  WrongPlatformAddress,
} from '../../../platforms/connect-methods.ts';
import { PlatformId } from '../../../platforms/manifest-fields.ts';
import { presetsOf } from '../../../platforms/presets.ts';
import { text } from '../../../wire/action.ts';
import { Refusal } from '../../errors.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';
import { SecretParts, secretPartsShown } from '../../secret-parts-shown.ts';

const WAY = z.enum(['token', 'oauth', 'app']);

const BuiltInPlatform = z
  .object({
    builtin: z.enum(BUILTIN_NAMES).describe('as in `use` of an entry'),
    name: z.string(),
    docs: z.url().nullable(),
    platform_id: z.string().describe('the id that its scopes are named after'),
    base_url: z.url().nullable().describe('null: every customer has a different address'),
    ways: z.array(z.object({ way: WAY, what: z.string() })).describe('how it is connected, as text'),
    credential: z.object({
      what: z.string(),
      made: z.string().describe('where it is created: an address, or the command that creates it'),
      parts: SecretParts,
    }),
    registered: z.url().nullable().describe('where a client for OAuth is registered'),
    app: z
      .object({ register: z.url(), permissions: z.record(z.string(), z.string()) })
      .nullable()
      .describe('the form for a new App, with the permissions that it fills in; null: it is connected by no App'),
    consent: z.array(z.string()).describe('scopes of the platform that OAuth asks for, unless others are named'),
    presets: z.array(z.object({ name: z.string(), scopes: z.array(z.string()) })),
  })
  .meta({ id: 'BuiltInPlatform' });

function shown(builtin: BuiltinName): z.output<typeof BuiltInPlatform> {
  const manifest = BUILTIN_PLATFORMS[builtin];
  return {
    builtin,
    name: manifest.name ?? builtin,
    docs: manifest.docs ?? null,
    platform_id: defaultId(builtin),
    base_url: needsAddress(builtin) ? null : manifest.base_url,
    ways: connectMethodsOf(builtin).map((way) => ({ way, what: CONNECT_METHODS[way] })),
    credential: { ...credentialOf(builtin), parts: secretPartsShown(manifest.auth) },
    registered: registrationOf(builtin) ?? null,
    app: connectMethodsOf(builtin).includes('app') ? appOf() : null,
    consent: consentFor(builtin),
    presets: presetsOf(manifest),
  };
}

/** GitHub is the only platform with Apps. */
function appOf() {
  const permissions = permissionsFor();
  return { register: registrationForm(permissions), permissions };
}

/** GET /owner/built-in-platforms */
export const ownerBuiltInPlatforms = route({
  method: 'GET',
  path: '/owner/built-in-platforms',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.built_in_platforms.list',
  summary: 'The built-in platforms, and what connecting each requires.',
  answers: {
    200: { description: 'All of them.', schema: z.object({ built_in_platforms: z.array(BuiltInPlatform) }) },
  },
  errors: [],
  handle: async () => json(200, { built_in_platforms: BUILTIN_NAMES.map(shown) }),
});

/** GET /owner/built-in-platforms/{name}/entry: the same entry that `agent-broker add` writes. */
export const builtInEntry = route({
  method: 'GET',
  path: '/owner/built-in-platforms/{name}/entry',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.built_in_platforms.entry',
  summary: 'The `entry` with which `POST /owner/platforms` makes a built-in platform.',
  params: { name: z.string().describe('such as `github`') },
  query: z.object({
    platform: PlatformId.describe('the id that it shall have').optional(),
    base_url: text(2_000).describe('where it is, when that is not its public address').optional(),
    client_id: text(500).describe('of the client that was registered there, for OAuth').optional(),
    app_id: text(100).describe('of an App').optional(),
    installation_id: text(100).describe('where the App is installed').optional(),
  }),
  answers: {
    200: {
      description: 'The entry, and which `secrets` go with it.',
      schema: z.object({
        entry: z.record(z.string(), z.unknown()),
        secrets: z.array(z.enum(['client_secret', 'private_key'])),
      }),
    },
  },
  errors: ['invalid_request', 'not_found'],
  handle: async ({ params: { name }, query }) => {
    if (!isBuiltin(name)) throw new Refusal('not_found', 'There is no such built-in platform.');
    const { platform = defaultId(name), base_url, client_id: clientId, app_id: appId, installation_id } = query;
    const has = (way: 'oauth' | 'app') => {
      if (!connectMethodsOf(name).includes(way))
        throw new Refusal('invalid_request', `${name} is not connected by ${CONNECT_METHODS[way]}.`);
    };
    const { overrides } = placeIn(name, base_url);
    if (clientId !== undefined) {
      has('oauth');
      const auth = authFor(platform, { way: 'oauth', clientId, scopes: consentFor(name) });
      return json(200, { entry: { use: name, ...overrides, auth }, secrets: ['client_secret' as const] });
    }
    if (appId === undefined) return json(200, { entry: { use: name, ...overrides }, secrets: [] });
    has('app');
    if (installation_id === undefined)
      throw new Refusal('invalid_request', 'installation_id: say which installation of the App.');
    const auth = authFor(platform, { way: 'app', appId, installationId: installation_id });
    return json(200, { entry: { use: name, ...overrides, auth }, secrets: ['private_key' as const] });
  },
});

function placeIn(name: BuiltinName, url: string | undefined) {
  try {
    return locatePlatform(name, url);
  } catch (error) {
    if (error instanceof WrongPlatformAddress) throw new Refusal('invalid_request', `base_url: ${error.message}.`);
    throw error;
  }
}

/** Lists these routes. */
export const builtInRoutes = [ownerBuiltInPlatforms, builtInEntry];
