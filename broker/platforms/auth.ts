/** How a platform authenticates. The secret itself belongs to a connection; the manifest only has its placement. */
import { z } from 'zod';
import { PlatformHeaderName, PlatformUrl, recordOf, SecretReference } from './fields.ts';
import { AwsSigV4Auth, HmacAuth } from './signing-auth.ts';
import { ClientCredentialsAuth, ServiceAccountAuth } from './token-auth.ts';

/** Additional parameters of authorization requests; those that the broker sets itself are refused. */
const AuthorizationParameter = z
  .string()
  .regex(
    /^(?!(?:client_id|client_secret|redirect_uri|response_type|response_mode|scope|state|nonce|code_challenge|code_challenge_method|request|request_uri)$)[A-Za-z0-9._~-]{1,64}$/,
    'is a parameter that the broker sets itself, or no name of one',
  );

/** An App is installed at an account; each installation has a number, which is the end of its URL at the platform. */
export const INSTALLATION_ID = /^[1-9]\d{0,19}$/;

/** A platform's authorization server; from a built-in manifest, or overridden by an operator's auth. */
const OAuthEndpoints = {
  authorization_endpoint: PlatformUrl.optional().describe('Where a person consents (RFC 6749 §3.1).'),
  token_endpoint: PlatformUrl.optional().describe('Where codes and refresh tokens are exchanged (RFC 6749 §3.2).'),
  revocation_endpoint: PlatformUrl.optional().describe('Where a token is revoked (RFC 7009).'),
  scope_separator: z
    .enum([' ', ','])
    .optional()
    .describe('The separator of scopes in an authorization request: a space (the default), or a comma.'),
  token_endpoint_auth_method: z
    .enum(['client_secret_basic', 'client_secret_post'])
    .optional()
    .describe(
      'How the client secret is sent (RFC 6749 §2.3.1): client_secret_basic, which is the default, or client_secret_post.',
    ),
  token_type: z
    .string()
    .regex(/^[\x21-\x7e]{1,50}$/, 'write the value of `token_type`')
    .optional()
    .describe('The `token_type` with which the server marks a bearer token, if it is not "bearer".'),
  authorization_parameters: recordOf(AuthorizationParameter, z.string().max(500))
    .optional()
    .describe('Further parameters of the authorization request, such as one that asks for a refresh token.'),
  account: z
    .strictObject({
      url: PlatformUrl.describe('Requested once, with the new access token, after a person has connected.'),
      pointer: z
        .string()
        .regex(/^(?:\/(?:[^~/]|~[01])*)+$/, 'write a JSON pointer such as "/login"')
        .describe('Where the answer names the account (RFC 6901).'),
    })
    .optional()
    .describe('How owners learn which account it is, if no ID token names it.'),
};

export const OAuthFacts = z
  .strictObject(OAuthEndpoints)
  .describe("The platform's authorization server, used when auth is of type oauth2.");

export const Auth = z
  .discriminatedUnion(
    'type',
    [
      z.strictObject({ type: z.literal('bearer') }).describe('The secret is sent as Authorization: Bearer.'),
      z
        .strictObject({ type: z.literal('basic') })
        .describe('The secret, "user:password", is sent as Authorization: Basic (RFC 7617).'),
      z
        .strictObject({
          type: z.literal('header'),
          name: PlatformHeaderName.describe('The header that carries the secret.'),
          prefix: z
            .string()
            .max(100)
            .regex(/^[\x21-\x7e][\x20-\x7e]*$/, 'write printable ASCII, such as "Token "')
            .optional()
            .describe('The prefix of the secret, sent unchanged: "Token " with its space.'),
        })
        .describe('The secret is sent in a separate header.'),
      z
        .strictObject({
          type: z.literal('query'),
          name: z
            .string()
            .regex(/^[A-Za-z0-9._~-]+$/, 'write letters, digits, ".", "_", "~" or "-"')
            .describe('The query parameter that carries the secret.'),
        })
        .describe('The secret is sent in the query string.'),
      z
        .strictObject({
          type: z.literal('app'),
          app_id: z
            .string()
            .regex(/^[\x21-\x7e]{1,100}$/, 'write the id of the App, in quotes')
            .describe('The id of the App, or its client id: the issuer of its JWT.'),
          private_key: SecretReference.describe("The App's private key: RSA, in PEM."),
          installation_id: z
            .string()
            .regex(INSTALLATION_ID, 'write the number of the installation, in quotes')
            .optional()
            .describe(
              'The installation whose tokens are used; without it, the secret of the connection is its number.',
            ),
        })
        .describe(
          'The broker signs as an App and gets short-lived tokens of an installation for that, as GitHub Apps do: for each call one that is limited to what the call needs.',
        ),
      ClientCredentialsAuth,
      ServiceAccountAuth,
      AwsSigV4Auth,
      HmacAuth,
      z
        .strictObject({
          type: z.literal('oauth2'),
          issuer: PlatformUrl.optional().describe('The issuer whose metadata names the endpoints (RFC 8414).'),
          ...OAuthEndpoints,
          client_id: z
            .union([z.string().min(1), SecretReference])
            .optional()
            .describe(
              "The broker's client id at the platform. For kind mcp it may be left out: the broker becomes a client by itself.",
            ),
          registration: z
            .enum(['document', 'dynamic'])
            .optional()
            .describe(
              'How it does that: by a client ID metadata document, which the server fetches from the broker, or by dynamic registration (RFC 7591). Without it, by a document where the server supports them and BASE_URL is https, otherwise by registration.',
            ),
          client_secret: SecretReference.optional().describe('Its secret; a public client has none.'),
          scopes: z.array(z.string().min(1)).optional().describe('The scopes to ask for when a person connects.'),
          redirect_uri: z
            .enum(['organisation', 'shared', 'connection'])
            .optional()
            .describe(
              "Which redirect URI the client_id is registered with: the organisation's (the default), the shared one (the default of built-in platforms; others may have it on a broker with one organisation), or the connection's.",
            ),
        })
        .describe('A person connects through OAuth; the token is sent as Authorization: Bearer and refreshed.'),
    ],
    {
      error:
        'write { type: bearer }, or one of basic, header, query, app, client_credentials, service_account, aws_sigv4, hmac, oauth2',
    },
  )
  .describe('Where the credential goes in a request.');
export type Auth = z.infer<typeof Auth>;
