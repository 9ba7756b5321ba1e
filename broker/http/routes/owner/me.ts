/** Who is signed in, and how one signs in. */
import { findOrganisation } from '../../../store/organisations.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

/** GET /owner/me */
export const ownerMe = route({
  method: 'GET',
  path: '/owner/me',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.me',
  summary: 'The owner whose session this is.',
  answers: { 200: 'The owner, the organisation, and when the session ends.' },
  errors: [],
  handle: async ({ governor: { broker }, who }) => {
    const organisation = await findOrganisation(broker.store.db, who.organisationId);
    return json(200, {
      id: who.owner.id,
      email: who.owner.email,
      role: who.role,
      organisation: { id: who.organisationId, name: organisation!.name },
      session_expires_at: new Date(who.session.expiresAt * 1000).toISOString(),
      sign_in: who.session.signIn,
      base_url: broker.baseUrl,
    });
  },
});

/** GET /owner/sign-in-options: what the sign-in page offers. */
export const ownerSignInOptions = route({
  method: 'GET',
  path: '/owner/sign-in-options',
  auth: 'none',
  capability: 'owner.sign_in_options',
  summary: 'How owners sign in here.',
  answers: { 200: 'By links of this broker, or at an identity provider.' },
  errors: [],
  handle: async () => json(200, { method: 'local' }),
});
