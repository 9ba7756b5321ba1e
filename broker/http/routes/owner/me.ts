/** The signed-in owner, and the ways to sign in. */

import { z } from 'zod';
import { organisationRedirectUri } from '../../../oauth-client/redirect-uri.ts';
import { OrganisationNamed, organisationsOf } from '../../owners-organisations.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';
import { START_PATH } from './oidc.ts';

const Me = z
  .object({
    id: z.guid(),
    email: z.string(),
    role: z.enum(['admin', 'approver', 'viewer']),
    organisation: OrganisationNamed,
    session_expires_at: z.iso.datetime(),
    sign_in: z.enum(['local', 'oidc']),
    base_url: z.url(),
    redirect_uri: z
      .url()
      .describe('where authorization servers send people back to, for clients that the organisation registers'),
    organisations: z.array(OrganisationNamed).describe('others, of who signed in at an identity provider'),
  })
  .meta({ id: 'Me' });

/** GET /owner/me */
export const ownerMe = route({
  method: 'GET',
  path: '/owner/me',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.me',
  summary: 'The owner whose session this is.',
  answers: { 200: { description: 'The owner, the organisation, and when the session ends.', schema: Me } },
  errors: [],
  handle: async ({ services: { broker }, who }) => {
    const { organisation, organisations } = await organisationsOf(broker, who);
    return json(200, {
      id: who.owner.id,
      email: who.owner.email,
      role: who.role,
      organisation,
      session_expires_at: new Date(who.session.expiresAt * 1000).toISOString(),
      sign_in: who.session.signIn,
      base_url: broker.baseUrl,
      redirect_uri: organisationRedirectUri(broker.baseUrl, organisation.id),
      organisations,
    });
  },
});

/** GET /owner/sign-in-options: data of the sign-in page. */
export const ownerSignInOptions = route({
  method: 'GET',
  path: '/owner/sign-in-options',
  auth: 'none',
  capability: 'owner.sign_in_options',
  summary: 'How owners sign in here.',
  answers: {
    200: {
      description: 'By links of this broker, or at an identity provider.',
      schema: z.union([
        z.object({ method: z.literal('local') }),
        z.object({ method: z.literal('oidc'), start_url: z.url(), provider: z.string().describe('its host') }),
      ]),
    },
  },
  errors: ['invalid_request'],
  handle: async ({ services: { broker, provider } }) =>
    json(
      200,
      provider
        ? // Absolute: a browser that uses another host name has to come back to the one that is registered at the provider.
          { method: 'oidc', start_url: broker.baseUrl + START_PATH, provider: provider.host }
        : { method: 'local' },
    ),
});
