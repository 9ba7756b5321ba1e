/** The broker as a client of authorization servers. */
import { z } from 'zod';
import { CLIENT_DOCUMENT_PATH, clientDocument } from '../../oauth-client/client-document.ts';
import { json } from '../reply.ts';
import { route } from '../route.ts';

const ClientDocument = z
  .object({
    client_id: z.url().describe('its own address'),
    client_name: z.string(),
    client_uri: z.url(),
    redirect_uris: z.array(z.url()),
    grant_types: z.array(z.string()),
    response_types: z.array(z.string()),
    token_endpoint_auth_method: z.literal('none'),
    application_type: z.enum(['web', 'native']),
  })
  .meta({ id: 'ClientIdMetadataDocument' });

/** GET /.well-known/svc-oauth-client/{id} */
export const oauthClientDocument = route({
  method: 'GET',
  path: `${CLIENT_DOCUMENT_PATH}/{id}`,
  auth: 'none',
  anyOrigin: true,
  capability: 'oauth_client.document',
  summary: "The broker's client ID metadata document for a connection to an MCP server, which is its client id there.",
  params: { id: z.uuid().describe('the connection') },
  answers: {
    200: {
      description:
        'What an authorization server has to know of the broker. It is the same whether there is such a connection or not.',
      schema: ClientDocument,
      headers: ['Cache-Control'],
    },
  },
  errors: ['not_found'],
  handle: async ({ services: { broker }, params }) =>
    json(200, clientDocument(broker.baseUrl, params.id), { 'Cache-Control': 'public, max-age=3600' }),
});
