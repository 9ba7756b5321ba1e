/** The OpenID Connect provider at which owners sign in. */
import { z } from 'zod';
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
};

export type OidcConfig = {
  /** Exactly as the provider calls itself. */
  issuer: string;
  clientId: string;
  clientSecret: Secret | undefined;
  scopes: string;
  /** Whether its addresses count, whether it calls them verified or not. */
  trustEmail: boolean;
  /** Whether the provider runs on this machine. */
  onLoopback: boolean;
};

/** undefined: owners sign in by links. */
export function oidcOf(env: z.output<z.ZodObject<typeof OIDC_VARIABLES>>): OidcConfig | undefined {
  if (env.OIDC_ISSUER === undefined || env.OIDC_CLIENT_ID === undefined) return undefined;
  return {
    issuer: env.OIDC_ISSUER,
    clientId: env.OIDC_CLIENT_ID,
    clientSecret: env.OIDC_CLIENT_SECRET === undefined ? undefined : new Secret(env.OIDC_CLIENT_SECRET),
    scopes: env.OIDC_SCOPES,
    trustEmail: env.OIDC_TRUST_EMAIL === 'on',
    onLoopback: LOOPBACK.test(new URL(env.OIDC_ISSUER).hostname),
  };
}
