/** Schemas of the metadata of the OAuth server (RFC 8414, RFC 9728). */
import { z } from 'zod';

export const AuthorizationServer = z
  .looseObject({
    issuer: z.url(),
    jwks_uri: z.url(),
    response_types_supported: z.array(z.string()),
    grant_types_supported: z.array(z.string()),
    authorization_endpoint: z.url(),
    token_endpoint: z.url(),
    registration_endpoint: z.url(),
    service_documentation: z.url(),
  })
  .meta({ id: 'OAuthAuthorizationServer' });

export const ProtectedResource = z
  .looseObject({
    resource: z.url(),
    authorization_servers: z.array(z.url()),
    bearer_methods_supported: z.array(z.string()),
  })
  .meta({ id: 'OAuthProtectedResource' });
