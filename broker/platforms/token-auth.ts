/** Kinds of `auth` with which the broker gets access tokens by itself; the secret of the connection authenticates the broker. */
import { z } from 'zod';
import { PlatformUrl, recordOf } from './fields.ts';

/** The default token endpoint, Google's ("Using OAuth 2.0 for Server to Server Applications"). */
export const GOOGLE_TOKEN_ENDPOINT = 'https://oauth2.googleapis.com/token';

/** RFC 6749 §3.3: scope-token. */
const Scope = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/, 'is not the name of an OAuth scope');

/** Additional parameters of the token request; those that the broker sets itself are refused. */
const TokenParameter = z
  .string()
  .regex(
    /^(?!(?:grant_type|scope|client_id|client_secret|client_assertion|client_assertion_type|assertion|code|refresh_token)$)[A-Za-z0-9._~-]{1,64}$/,
    'is a parameter that the broker sets itself, or no name of one',
  );

export const ClientCredentialsAuth = z
  .strictObject({
    type: z.literal('client_credentials'),
    token_endpoint: PlatformUrl.describe('Where the token is requested.'),
    token_endpoint_auth_method: z
      .enum(['client_secret_basic', 'client_secret_post'])
      .optional()
      .describe(
        'How client id and secret are sent (RFC 6749 §2.3.1): client_secret_basic, which is the default, or client_secret_post.',
      ),
    scopes: z.array(Scope).max(100).optional().describe('The scopes to ask for.'),
    parameters: recordOf(TokenParameter, z.string().max(500))
      .optional()
      .describe('Further parameters of the token request, such as "audience" or "resource".'),
  })
  .describe(
    'The broker gets short-lived tokens with a client id and a client secret, which are the secret of the connection (RFC 6749 §4.4).',
  );

export const ServiceAccountAuth = z
  .strictObject({
    type: z.literal('service_account'),
    token_endpoint: PlatformUrl.optional().describe(`The token endpoint; ${GOOGLE_TOKEN_ENDPOINT} by default.`),
    scopes: z.array(Scope).min(1).max(100).describe('The scopes to ask for.'),
    subject: z
      .string()
      .regex(/^[\x21-\x7e]{1,250}$/, 'write the address of the user, such as "team@example.com"')
      .optional()
      .describe(
        'The user for whom the account acts, where an administrator allowed it that (domain-wide delegation). Absent, the assertion has no subject.',
      ),
  })
  .describe(
    'The broker signs with the key of a service account, which is the secret of the connection, and gets short-lived tokens for that (RFC 7523 §2.1), as Google has it.',
  );
