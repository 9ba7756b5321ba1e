/** Schema of the answer of GET /v1/agent/permissions (specification, Effective permissions). */
import { z } from 'zod';
import { EnvelopeMeta } from './governed-answers.ts';

const scopes = z.array(z.string());

const granted = {
  scopes,
  requireApproval: z.boolean().describe('whether every call is held'),
  approvalScopes: scopes
    .optional()
    .describe('scopes whose calls a policy or a guardrail holds, also where the grant holds every call'),
  conditionalScopes: scopes.optional().describe('usable scopes whose real call may still be held or refused'),
  unenforcedScopes: scopes.optional().describe('scopes that no rule of the platform knows, so that they allow nothing'),
  constraints: z.looseObject({}).optional().describe('recipients, repositories and refs that the grant is held to'),
  expiresInSeconds: z.int().optional().describe('until the grant ends'),
};

const Connection = z.looseObject({
  connection_id: z.string().describe('for connection_id of a call'),
  label: z.string().nullable(),
  status: z
    .enum(['active', 'reauth_needed', 'not_connected', 'per_person'])
    .describe(
      'reauth_needed: the platform refused the stored credential; not_connected: there is none; per_person: each person gives a token for it, so calls name a caller',
    ),
  default: z.boolean().describe('what a call without connection_id goes through; nowhere true: it has to be named'),
  ...granted,
});

const Platform = z
  .object({
    platformId: z.string(),
    platformName: z.string(),
    ...granted,
    connections: z
      .array(Connection)
      .optional()
      .describe('what is granted through each; empty: the platform is not connected'),
    callStyle: z.literal('graphql').optional(),
    baseUrl: z.string().optional().describe('the prefix of every endpoint; absent for MCP servers'),
    otherBaseUrls: z.array(z.string()).optional().describe('the prefixes of single operations in place of baseUrl'),
    errorBody: z
      .union([z.looseObject({}), z.string()])
      .optional()
      .describe(
        'how the platform writes an error: a refusal has this form, with {detail}, {code} and {status} filled in',
      ),
    errorStatus: z.literal(200).optional().describe('the platform tells of errors with this status'),
    serverHost: z.string().optional(),
    serverName: z.string().optional(),
  })
  .meta({ id: 'PlatformPermissions' });

export const EffectivePermissions = z
  .object({
    data: z.object({
      agent: z.looseObject({ id: z.guid(), name: z.string(), agent_id: z.string() }),
      platforms: z.array(Platform),
      version: z.string().describe('equals the ETag'),
      egress: z
        .looseObject({})
        .optional()
        .describe(
          'the hosts that calls are sent to; redirects that are followed may lead to others; absent where the organisation is not entitled to it',
        ),
    }),
    _meta: EnvelopeMeta,
  })
  .meta({ id: 'EffectivePermissions' });
