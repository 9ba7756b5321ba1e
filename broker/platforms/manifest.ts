/** What a platform is, as data: one schema for the built-in ones and for those an operator describes in governance.yaml. */
import { z } from 'zod';
import { foldName } from '../decision/names.ts';
import {
  compilePlatformRules,
  misplaced,
  type PlatformRules,
  parseOperation,
  RECIPIENT_FORMATS,
} from '../decision/operation.ts';
import { Auth, OAuthFacts } from './auth.ts';
import { HeaderName, HeaderValue, PlatformHeaderName, PlatformUrl, recordOf } from './fields.ts';

const ScopeId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9:._/-]{0,127}$/, 'write a scope id such as "crm:contacts.read"')
  .describe('The id of a scope, by custom "<platform>:<area>.<action>".');

/** RFC 6901, with `*` for every element of a list or member of an object. */
const JsonPointer = z.string().regex(/^(?:\/(?:[^~/]|~[01])*)+$/, 'write a JSON pointer such as "/to" or "/cc/*"');

const Pointer = z
  .union([
    JsonPointer,
    z.strictObject({
      pointer: JsonPointer.describe('A JSON pointer (RFC 6901); "*" stands for each element.'),
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

export const PlatformId = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,62}$/, 'write lower-case letters, digits, "_" or "-", such as "crm"')
  .describe('The id by which agents name the platform.');

/** The fields alone, without what must hold between them. */
export const ManifestFields = z.strictObject(
  {
    kind: z.enum(['rest', 'graphql', 'mcp']).describe('What the platform speaks.'),
    name: z.string().min(1).max(100).optional().describe('Its name for people.'),
    docs: PlatformUrl.optional().describe('Where its API reference is.'),
    base_url: PlatformUrl.describe(
      'What stands before every endpoint. For kind graphql and mcp it is the whole address, and the endpoint "/" means it.',
    ),
    headers: recordOf(PlatformHeaderName, HeaderValue)
      .optional()
      .describe('Headers that go with every call, such as the version of the API. Never a credential.'),
    forbidden_headers: z
      .array(HeaderName)
      .max(100)
      .optional()
      .describe(
        'Headers of an agent that are never sent on, because they reach beyond what its scopes say, such as one that names another account.',
      ),
    auth: Auth,
    oauth: OAuthFacts.optional(),
    body: z.enum(['json', 'form']).optional().describe('How `data` is encoded: json (the default), or form.'),
    scopes: recordOf(ScopeId, z.array(z.string()).max(500)).describe(
      'What each scope allows: "GET /path/*", "query name*", "mutation name" or "tool name_*".',
    ),
    needs: recordOf(ScopeId, z.array(z.string().min(1)).min(1))
      .optional()
      .describe('OAuth scopes of the platform of which a scope needs at least one; the first is asked for.'),
    recipients: z
      .record(z.string(), z.array(Pointer).min(1))
      .optional()
      .describe('Which operations send something to somebody, and where their body says to whom.'),
    graphql: z
      .strictObject({ path: z.string().regex(/^(?:\/[A-Za-z0-9._~-]+)+$/, 'write a plain path such as "/graphql"') })
      .optional()
      .describe('The GraphQL door of a REST platform: calls to it are judged by their document.'),
    git_base_url: PlatformUrl.optional().describe('Where git repositories are cloned from, for a code host.'),
    per_person: z
      .strictObject({
        enabled: z.boolean().describe('Whether each person has a token of their own.'),
        asserted: z
          .array(z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,31}$/, 'write a source such as "slack"'))
          .optional()
          .describe('Sources whose word for who the person is is taken; signed assertions always are.'),
      })
      .optional()
      .describe('Tokens per person on a shared connection.'),
    attestation: z
      .enum(['off', 'header', 'meta', 'both'])
      .optional()
      .describe('How calls to an MCP server tell who is calling.'),
    encoded_slash: z
      .boolean()
      .optional()
      .describe('Whether "%2F" may stand inside a path segment; off by default, because servers differ in reading it.'),
  },
  {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? `${issue.keys.map((key) => `"${key}"`).join(', ')} is not a field of a platform`
        : undefined,
  },
);

export const Manifest = ManifestFields.superRefine((manifest, context) => {
  for (const { path, message } of problems(manifest)) context.addIssue({ code: 'custom', path, message });
}).describe('A platform that agents may call through the broker.');

export type ManifestInput = z.input<typeof Manifest>;
export type Manifest = z.infer<typeof Manifest>;

/** Any field but the kind may be overridden; a built-in manifest's scopes are meant for its kind. */
export const ManifestOverrides = ManifestFields.omit({ kind: true }).partial();
export type ManifestOverrides = z.input<typeof ManifestOverrides>;

/**
 * The rules of a platform, for deciding.
 *
 * @param manifest one that `Manifest` has accepted; nothing is left that could fail then
 * @throws Error with a sentence that begins with the platform's id
 */
export function compileManifest(platformId: string, manifest: Manifest): PlatformRules {
  try {
    return compilePlatformRules(manifest);
  } catch (error) {
    throw new Error(`platform ${platformId}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/**
 * A built-in manifest with an operator's changes. Headers, scopes, needs and recipients are changed entry by entry (an
 * empty list takes a scope's rules away); every other field is replaced whole. At another origin the built-in place that
 * says whose account it is does not count: it would get tokens of a platform that is not its own.
 */
export function withOverrides(builtin: ManifestInput, overrides: ManifestOverrides): ManifestInput {
  const given = Object.fromEntries(Object.entries(overrides).filter(([, value]) => value !== undefined));
  const merged: ManifestInput = { ...builtin, ...given };
  for (const field of ['scopes', 'needs', 'recipients'] as const) {
    if (overrides[field] !== undefined) Object.assign(merged, { [field]: { ...builtin[field], ...overrides[field] } });
  }
  if (overrides.headers !== undefined) {
    const changed = new Set(Object.keys(overrides.headers).map(foldName));
    const kept = Object.entries(builtin.headers ?? {}).filter(([name]) => !changed.has(foldName(name)));
    merged.headers = { ...Object.fromEntries(kept), ...overrides.headers };
  }
  if (overrides.base_url !== undefined && overrides.oauth === undefined && builtin.oauth?.account !== undefined) {
    const { account, ...rest } = builtin.oauth;
    if (originOf(account.url) !== originOf(overrides.base_url)) merged.oauth = rest;
  }
  return merged;
}

const originOf = (url: string): string | undefined => URL.parse(url)?.origin;

type Problem = { path: (string | number)[]; message: string };

/** What must hold between fields. */
function problems(manifest: z.infer<typeof ManifestFields>): Problem[] {
  const { kind, auth, oauth, scopes } = manifest;
  const found: Problem[] = [];
  const only = (field: keyof typeof manifest, where: 'rest' | 'mcp') => {
    if (manifest[field] !== undefined && kind !== where) {
      found.push({ path: [field], message: `is for platforms of kind ${where} only` });
    }
  };
  for (const field of ['body', 'graphql', 'git_base_url', 'encoded_slash'] as const) only(field, 'rest');
  only('attestation', 'mcp');
  if (manifest.body === 'form' && manifest.graphql !== undefined)
    found.push({ path: ['graphql'], message: 'cannot stand beside body: form, because GraphQL calls are JSON' });
  if (auth.type === 'oauth2' && kind !== 'mcp' && auth.client_id === undefined)
    found.push({
      path: ['auth', 'client_id'],
      message: 'is missing; register the broker at the platform, and give its id',
    });
  // An MCP server says by itself which authorization server it trusts (RFC 9728).
  if (auth.type === 'oauth2' && auth.issuer === undefined && kind !== 'mcp') {
    for (const endpoint of ['authorization_endpoint', 'token_endpoint'] as const) {
      if (auth[endpoint] ?? oauth?.[endpoint]) continue;
      found.push({ path: ['auth', endpoint], message: 'is missing; give it, or an issuer that publishes it' });
    }
  }
  // Then whoever runs that server chooses who is shown the secret, so a manifest that brings one says for whom it is.
  const namesServer = auth.type === 'oauth2' && (auth.issuer ?? auth.token_endpoint ?? oauth?.token_endpoint);
  if (kind === 'mcp' && auth.type === 'oauth2' && auth.client_secret !== undefined && !namesServer)
    found.push({
      path: ['auth', 'issuer'],
      message:
        'is missing; a client_secret goes to one server only, so name its issuer (or token_endpoint), or leave the secret out',
    });
  if (manifest.per_person?.enabled && auth.type !== 'oauth2') {
    found.push({ path: ['per_person'], message: 'needs auth of type oauth2: each person connects through OAuth' });
  }
  const carriesSecret = new Set(['authorization', auth.type === 'header' ? foldName(auth.name) : '']);
  const seen = new Set<string>();
  for (const name of Object.keys(manifest.headers ?? {})) {
    const folded = foldName(name);
    if (seen.has(folded))
      found.push({ path: ['headers', name], message: 'is given twice; the case of a name means nothing' });
    seen.add(folded);
    if (!carriesSecret.has(folded)) continue;
    found.push({ path: ['headers', name], message: 'carries a credential; give it to a connection as its secret' });
  }
  for (const scope of Object.keys(manifest.needs ?? {})) {
    if (!Object.hasOwn(scopes, scope))
      found.push({ path: ['needs', scope], message: 'is not one of the scopes above' });
  }
  return [...found, ...operationProblems(manifest)];
}

function operationProblems(manifest: z.infer<typeof ManifestFields>): Problem[] {
  const rules = Object.entries(manifest.scopes).flatMap(([scope, texts]) =>
    texts.map((text, i) => ({ text, path: ['scopes', scope, i] })),
  );
  const recipients = Object.keys(manifest.recipients ?? {}).map((text) => ({ text, path: ['recipients', text] }));
  return [...rules, ...recipients].flatMap(({ text, path }) => {
    const message = operationProblem(text, manifest);
    return message === undefined ? [] : [{ path, message }];
  });
}

function operationProblem(text: string, manifest: z.infer<typeof ManifestFields>): string | undefined {
  try {
    return misplaced(parseOperation(text), manifest);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
