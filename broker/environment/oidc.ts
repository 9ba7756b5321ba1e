/** The OpenID Connect provider at which owners sign in. */
import { z } from 'zod';
import { UUID_PATTERN } from '../crypto/ids.ts';
import { Secret } from '../crypto/secret.ts';
import { isIssuer, LOOPBACK } from './forms.ts';

export const OIDC_VARIABLES = {
  OIDC_ISSUER: z
    .string()
    .refine(isIssuer, 'must be https://…, without query or fragment; http:// only on loopback')
    .optional()
    .describe('issuer of the OpenID Connect provider at which owners sign in; without it they sign in by links'),
  OIDC_CLIENT_ID: z.string().min(1).max(255).optional().describe('client id of this broker at the provider'),
  OIDC_CLIENT_SECRET: z.string().min(1).optional().describe('its secret; without one it is a public client'),
  OIDC_SCOPES: z
    .string()
    .regex(/^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/, 'must be scopes separated by single spaces')
    .refine((text) => text.split(' ').includes('openid'), 'must include openid')
    .default('openid email')
    .describe('scopes to ask the provider for'),
  OIDC_TRUST_EMAIL: z
    .enum(['on', 'off'])
    .default('off')
    .describe(
      'whether an address of the provider counts that it does not call verified; on: nobody may choose their address there',
    ),
  OIDC_ROLES: z
    .string()
    .transform(readRoles)
    .optional()
    .describe('roles of owners by groups of the provider, as JSON: {"admin": ["broker-admins"], "viewer": ["staff"]}'),
  OIDC_GROUPS_CLAIM: z
    .string()
    .min(1)
    .max(255)
    .default('groups')
    .describe('claim in which the provider says the groups'),
  OIDC_ROLES_ORGANISATION: z
    .string()
    .regex(
      UUID_PATTERN,
      'must be the id of an organisation, which `agent-broker organisation list` shows: admins can change names, and take over former ones',
    )
    .transform((id) => id.toLowerCase())
    .optional()
    .describe('id of the organisation whose owners they are; the oldest one when left out'),
};

const Groups = z.array(z.string().min(1).max(255)).max(100).optional();
const Roles = z.strictObject({ admin: Groups, approver: Groups, viewer: Groups });
/** Names of groups at the provider, by the role that each gives. */
export type Roles = z.output<typeof Roles>;
/** `claim`: the claim that contains the groups. `organisation`: id; undefined: the oldest one. */
export type RolesByGroups = { roles: Roles; claim: string; organisation: string | undefined };

function readRoles(text: string, context: z.RefinementCtx): Roles {
  const parsed = Roles.safeParse(jsonOf(text));
  // An empty mapping, as from a template without values, would take away the role of every owner by groups at the next sign-in.
  const isEmpty = parsed.success && Object.values(parsed.data).flat().length === 0;
  if (parsed.success && !isEmpty) return parsed.data;
  context.addIssue({
    code: 'custom',
    message: `must ${isEmpty ? 'name at least one group' : 'be JSON with lists of groups by role'}, such as {"admin": ["broker-admins"], "viewer": ["staff"]}`,
  });
  return z.NEVER;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export type OidcConfig = {
  /** Exactly as in the provider's metadata and tokens. */
  issuer: string;
  clientId: string;
  clientSecret: Secret | undefined;
  scopes: string;
  /** Whether its e-mail addresses count as verified, whatever the claims say. */
  trustEmail: boolean;
  /** Undefined: owners are invited one by one. */
  groups?: RolesByGroups | undefined;
  /** Whether the provider runs on this machine. */
  onLoopback: boolean;
};

/** Returns the provider's settings; undefined: owners sign in by links. */
export function oidcOf(env: z.output<z.ZodObject<typeof OIDC_VARIABLES>>): OidcConfig | undefined {
  if (env.OIDC_ISSUER === undefined || env.OIDC_CLIENT_ID === undefined) return undefined;
  return {
    issuer: env.OIDC_ISSUER,
    clientId: env.OIDC_CLIENT_ID,
    clientSecret: env.OIDC_CLIENT_SECRET === undefined ? undefined : new Secret(env.OIDC_CLIENT_SECRET),
    scopes: env.OIDC_SCOPES,
    trustEmail: env.OIDC_TRUST_EMAIL === 'on',
    groups: env.OIDC_ROLES && {
      roles: env.OIDC_ROLES,
      claim: env.OIDC_GROUPS_CLAIM,
      organisation: env.OIDC_ROLES_ORGANISATION,
    },
    onLoopback: LOOPBACK.test(new URL(env.OIDC_ISSUER).hostname),
  };
}
