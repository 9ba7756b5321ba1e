/** The manifest of a platform: one schema for built-in platforms and for those in governance.yaml. */
import { z } from 'zod';
import { RECIPIENT_FORMATS } from '../policy/platform-rules.ts';
import { Auth, OAuthFacts } from './auth.ts';
import { CODE_HOST_FIELDS } from './code-host-fields.ts';
import { ContentRule, ScopeId } from './content-fields.ts';
import { HeaderName, HeaderValue, JsonPointer, PlatformHeaderName, PlatformUrl, recordOf } from './fields.ts';
import { FREE_FIELDS } from './free-fields.ts';
import { TRANSFER_FIELDS } from './transfer-fields.ts';
import { UNMODIFIED_FIELDS } from './unmodified-fields.ts';

const Pointer = z
  .union([
    JsonPointer,
    z.strictObject({
      pointer: JsonPointer.describe('A JSON pointer (RFC 6901); "*" matches each element.'),
      format: z
        .enum(RECIPIENT_FORMATS)
        .optional()
        .describe(
          'What the value is, if not e-mail addresses: an id of the platform, ids between commas, or a whole mail message (RFC 5322) in base64url, whose To, Cc and Bcc are the recipients.',
        ),
      optional: z
        .boolean()
        .optional()
        .describe(
          'Whether a call that names nobody there sends nothing to anybody, so that it passes. Otherwise somebody must be named.',
        ),
    }),
  ])
  .describe('Where a body names who receives: "/to", or "/cc/*" for each of a list.');

const AppAccess = z.enum(['read', 'write', 'admin']);

const AppPermission = z
  .union([
    AppAccess,
    z.strictObject({
      access: AppAccess,
      if_allowed: ScopeId.describe('The scope that the agent must hold as well, with no rule in its way.'),
    }),
  ])
  .describe(
    'How far the permission goes: "read", "write" or "admin"; or, for agents with another scope only, { access, if_allowed }.',
  );

const AppPermissions = recordOf(
  z.string().regex(/^[a-z][a-z0-9_]{0,63}$/, 'write the name of a permission such as "pull_requests"'),
  AppPermission,
).refine(
  // A platform may treat an empty list as no limit at all.
  (permissions) => Object.values(permissions).some((one) => typeof one === 'string'),
  'name at least one permission that is always needed, such as { metadata: read }',
);

export const PlatformId = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,62}$/, 'write lower-case letters, digits, "_" or "-", such as "crm"')
  .describe('The id by which agents name the platform.');

/** One token per person: whether, and which sources are trusted to assert the identity of a person. */
export const PerPersonFields = z.strictObject({
  enabled: z.boolean().describe('Whether each person has a token of their own.'),
  asserted: z
    .array(z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,31}$/, 'write a source such as "slack"'))
    .optional()
    .describe('Sources that are trusted to say who the person is; signed assertions always are.'),
  asserted_consent: z
    .enum(['confirm', 'link'])
    .optional()
    .describe(
      'Of a person whom only a source asserts: whether an owner confirms the account before its first use (confirm, the default), or the link alone counts (link).',
    ),
});

/** The fields, without cross-field validation. */
export const ManifestFields = z.strictObject(
  {
    kind: z.enum(['rest', 'graphql', 'mcp']).describe('What the platform speaks.'),
    name: z.string().min(1).max(100).optional().describe('Its name for people.'),
    docs: PlatformUrl.optional().describe('Where its API reference is.'),
    base_url: PlatformUrl.describe(
      'The prefix of every endpoint. For kind graphql and mcp it is the whole address, and the endpoint is "/".',
    ),
    headers: recordOf(PlatformHeaderName, HeaderValue)
      .optional()
      .describe('Headers that go with every call, such as the version of the API. Never a credential.'),
    default_headers: recordOf(PlatformHeaderName, HeaderValue)
      .optional()
      .describe(
        'Headers that go with every call unless the agent sends another value, such as the form of the answer.',
      ),
    ...UNMODIFIED_FIELDS,
    forbidden_headers: z
      .array(HeaderName)
      .max(100)
      .optional()
      .describe(
        'Headers of an agent that are never sent on, because they reach beyond what its scopes say, such as one that names another account.',
      ),
    auth: Auth,
    oauth: OAuthFacts.optional(),
    ...TRANSFER_FIELDS,
    ...FREE_FIELDS,
    scopes: recordOf(ScopeId, z.array(z.string()).max(500)).describe(
      'What each scope allows: "GET /path/*", "query name*", "mutation name" or "tool name_*".',
    ),
    needs: recordOf(ScopeId, z.array(z.string().min(1)).min(1))
      .optional()
      .describe('OAuth scopes of the platform of which a scope needs at least one; the first is requested.'),
    app_permissions: recordOf(ScopeId, AppPermissions)
      .optional()
      .describe(
        'For auth of type app: the permissions that a call with a scope needs, which its token is limited to. Without this field tokens have all that the installation has.',
      ),
    app_operations: z
      .record(z.string(), AppPermissions)
      .optional()
      .describe(
        'For auth of type app: operations that need other permissions than the rest of their scope. These replace those of `app_permissions`.',
      ),
    recipients: z
      .record(z.string(), z.array(Pointer).min(1))
      .optional()
      .describe('Which operations send something to somebody, and where their body says to whom.'),
    content_scopes: z
      .record(z.string(), z.array(ContentRule))
      .optional()
      .describe(
        'Which operations need a further scope because of what their body holds, such as the path of a file that it writes.',
      ),
    ...CODE_HOST_FIELDS,
    presets: recordOf(
      z.string().regex(/^[a-z][a-z0-9-]{0,31}$/, 'write a name such as "read" or "issues"'),
      z.array(z.string().min(1).max(128)).min(1),
    )
      .optional()
      .describe(
        'Sets of scopes by which the command line grants them together, such as "read"; "*" in an entry matches any text.',
      ),
    graphql: z
      .strictObject({ path: z.string().regex(/^(?:\/[A-Za-z0-9._~-]+)+$/, 'write a plain path such as "/graphql"') })
      .optional()
      .describe('The GraphQL endpoint of a REST platform: calls to it are judged by their document.'),
    per_person: PerPersonFields.optional().describe('Tokens per person on a shared connection.'),
    attestation: z
      .enum(['off', 'header', 'meta', 'both'])
      .optional()
      .describe('How calls to an MCP server tell who is calling.'),
    trace: z
      .boolean()
      .optional()
      .describe('Whether calls that are traced are sent with the trace context of the broker (`traceparent`).'),
    sentences: z
      .record(z.string(), z.string().min(1).max(300))
      .optional()
      .describe(
        'What operations do, in a sentence for people: "create an issue in **{1}/{2}**[: *{/title}*]". `{1}` is the first `*` of the path, `{/title}` a member of the body, `[…]` is left out when a value in it is missing. See docs/platforms.md.',
      ),
    minor_units: recordOf(
      z.string().regex(/^[A-Z]{3}$/, 'write the code of a currency such as "ISK"'),
      z.int().min(0).max(4).nullable(),
    )
      .optional()
      .describe(
        'Currencies that the platform counts in another minor unit than ISO 4217 says, with the number of its digits; null where its documentation leaves that open.',
      ),
    encoded_slash: z
      .union([z.boolean(), z.literal('as_slash')])
      .optional()
      .describe(
        'Whether "%2F" is allowed in a path segment; off by default, because servers differ in reading it. as_slash: it is judged and sent as "/".',
      ),
  },
  {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? `${issue.keys.map((key) => `"${key}"`).join(', ')} is not a field of a platform`
        : undefined,
  },
);
