/** Sign-in with the local issuer: a session for scripts, a link for the browser. */

import { z } from 'zod';
import { readOrganisation } from '../../../admin/organisations/organisation.ts';
import { ownerNamed } from '../../../admin/organisations/owners.ts';
import { CHALLENGE, localProof } from '../../../auth/local-proof.ts';
import { mintOwnerSession, ownerInBrowser, signOut } from '../../../auth/owner-session.ts';
import type { OwnerPrincipal } from '../../../auth/principal.ts';
import { sessionCookie } from '../../../auth/session-cookie.ts';
import { findSignInLink, signInLink } from '../../../auth/sign-in-link.ts';
import { Refusal } from '../../errors.ts';
import { changingOwner } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { type Context, route } from '../../route.ts';
import { SignedInSession, signedIn } from '../../signed-in.ts';

const WhichOwner = z.strictObject({
  email: z.email().max(254).optional().describe('whose session; the first admin when left out'),
  organisation: z
    .string()
    .max(100)
    .optional()
    .describe('its name, when there are several; not needed where only one of them has the owner'),
});

/** POST /owner/local-proof: called before the command line sends the local credential. */
export const proveLocal = route({
  method: 'POST',
  path: '/owner/local-proof',
  auth: 'none',
  capability: 'owner.local_proof',
  summary: 'Proves to the command line that this broker wrote the local credential of its data folder.',
  body: z.strictObject({ challenge: z.string().regex(CHALLENGE).describe('random, 128 bits in base64url at least') }),
  answers: {
    200: {
      description: 'The HMAC-SHA256 of the challenge under the credential.',
      schema: z.object({ proof: z.string() }),
    },
  },
  errors: ['invalid_request'],
  handle: async ({ services: { local }, body }) =>
    json(200, { proof: localProof(local.token.reveal(), body.challenge) }),
});

/** POST /owner/token: an owner session for the command line on this machine. */
export const ownerToken = route({
  method: 'POST',
  path: '/owner/token',
  auth: 'local',
  capability: 'owner.token',
  summary: 'A session of an owner, for scripts.',
  body: WhichOwner,
  answers: {
    200: { description: 'The session as a JWT.', schema: SignedInSession.extend({ token: z.string() }) },
  },
  errors: ['invalid_request', 'not_found'],
  handle: async ({ services: { broker }, body }) => {
    const owner = await ownerNamed(broker, body);
    const session = mintOwnerSession(broker, owner);
    return json(200, {
      token: session.token,
      email: owner.email,
      role: owner.role,
      expires_at: new Date(session.expiresAt * 1000).toISOString(),
    });
  },
});

/** POST /owner/link: returns a link that signs an owner in, once, within 15 minutes; with an identity provider, the address of the sign-in. */
export const ownerLink = route({
  method: 'POST',
  path: '/owner/link',
  auth: 'local',
  capability: 'owner.link',
  summary: 'A sign-in link of an owner.',
  body: WhichOwner,
  answers: {
    200: {
      description: 'The link.',
      schema: z.object({
        url: z.url(),
        expires_at: z.iso.datetime().nullable(),
        email: z.string(),
        sign_in: z.enum(['local', 'oidc']),
        provider: z.string().optional().describe('the host of the identity provider'),
      }),
    },
  },
  errors: ['invalid_request', 'not_found'],
  handle: async ({ services: { broker, provider }, body }) => {
    const owner = await ownerNamed(broker, body);
    if (provider)
      return json(200, {
        url: `${broker.baseUrl}/console/sign-in`,
        expires_at: null,
        email: owner.email,
        sign_in: 'oidc',
        provider: provider.host,
      });
    return json(200, { ...(await signInLink(broker, owner)), email: owner.email, sign_in: 'local' });
  },
});

const linkUsed = () =>
  new Refusal(
    'link_used',
    "This link was used already, or is older than 15 minutes. Ask an admin for another one, or make one on the broker's machine with: npx agent-broker owner link",
  );

/**
 * Refuses a link in a browser that is signed in as another owner. Whoever may make links can send one to somebody else, whose browser would then act for
 * the maker's organisation, and give it what is entered.
 */
async function refuseLinkOfOtherOwner(
  { services: { broker }, request }: Pick<Context, 'services' | 'request'>,
  owner: OwnerPrincipal['owner'],
): Promise<void> {
  const who = await ownerInBrowser(broker, request);
  if (who === undefined || who.owner.id === owner.id) return;
  const { name } = await readOrganisation(broker.store.db, owner.organisation_id);
  throw new Refusal(
    'conflict',
    `This browser is signed in as ${who.owner.email}. The link is for ${owner.email} of the organisation ${name}: what you do after signing in with it, you do there.`,
  );
}

/** POST /owner/sign-in: exchanges the token of a sign-in link for a session. */
export const ownerSignIn = route({
  method: 'POST',
  path: '/owner/sign-in',
  auth: 'none',
  limit: { name: 'sign-in', perMinute: 10, per: 'address', counts: 'failures' },
  capability: 'owner.sign_in',
  summary: 'Exchanges a sign-in link for a session.',
  body: z.strictObject({
    token: z.string().max(128).describe('the fragment of the link, after #'),
    instead: z
      .literal(true)
      .optional()
      .describe(
        'also where the browser is signed in as another owner, whose session then ends; without it, that is a 409',
      ),
  }),
  answers: { 200: { description: 'Who signed in; the session is set as a cookie.', schema: SignedInSession } },
  errors: ['invalid_request', 'forbidden', 'link_used', 'conflict', 'rate_limited', 'audit_unavailable'],
  handle: async (context) => {
    const { broker, provider } = context.services;
    if (provider)
      throw new Refusal(
        'forbidden',
        `Owners sign in at ${provider.host} here; links are switched off. Go to ${broker.baseUrl}/console/sign-in.`,
      );
    const link = await findSignInLink(broker, context.body.token);
    if (!link) throw linkUsed();
    if (!context.body.instead) await refuseLinkOfOtherOwner(context, link.owner);
    // When the sign-in cannot be recorded, nobody is signed in, and the link stays valid.
    return await signedIn(context, link.owner, 'link', async (tx) => {
      if (!(await link.use(tx))) throw linkUsed();
    });
  },
});

/** POST /owner/sign-out: ends the session itself, so that a copy of its token is refused too, immediately and on every replica. */
export const ownerSignOut = route({
  method: 'POST',
  path: '/owner/sign-out',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.sign_out',
  summary: 'Ends this session, wherever it is used.',
  body: z.strictObject({}),
  bodyOptional: true,
  answers: {
    200: {
      description: 'The session has ended, and the cookie is deleted.',
      schema: z.object({ signed_out: z.literal(true) }),
    },
  },
  errors: ['invalid_request', 'audit_unavailable'],
  handle: async (context) => {
    const { services, who } = context;
    await signOut(services, who, changingOwner(context));
    return json(200, { signed_out: true }, { 'Set-Cookie': sessionCookie('', 0, services.broker.baseUrl) });
  },
});
