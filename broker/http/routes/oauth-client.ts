/** Documents of the broker as a client of authorization servers. */
import { z } from 'zod';
import { storedUuid } from '../../crypto/ids.ts';
import { CLIENT_DOCUMENT_PATH, clientDocument } from '../../oauth-client/client-document.ts';
import { Refusal } from '../errors.ts';
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
    application_type: z.literal('web'),
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
  handle: async ({ services: { broker }, params }) => {
    const id = storedUuid(params.id);
    if (id === '') throw new Refusal('not_found', 'The id of a connection is a UUID.');
    const document = clientDocument(broker.baseUrl, id);
    if (!document)
      throw new Refusal('not_found', 'Authorization servers fetch such documents by https only, and BASE_URL is http.');
    return json(200, document, { 'Cache-Control': 'public, max-age=3600' });
  },
});
