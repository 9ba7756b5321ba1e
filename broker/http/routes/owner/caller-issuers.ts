/** Issuers whose assertions about people the organisation trusts. */
import { z } from 'zod';
import { readOrganisation } from '../../../admin/organisations/organisation.ts';
import { distrustIssuer, trustIssuer } from '../../../admin/people/caller-issuers.ts';
import { CallerIssuer } from '../../../people/caller-issuer.ts';
import { ownSignInUri } from '../../../people/sign-in.ts';
import { changingOwner } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

const PATH = '/owner/caller-issuers';
const answers = {
  200: {
    description: 'All that are trusted now.',
    schema: z.object({
      caller_issuers: z.array(CallerIssuer),
      redirect_uris: z
        .record(z.string(), z.string())
        .describe('By issuer: its own redirect URI, where people who signed in there come back.'),
    }),
  },
};

type Trusting = { services: { broker: { baseUrl: string } }; who: { organisationId: string } };

/** The redirect URIs stand beside the issuers, so that each issuer can be posted back unchanged. */
const listed = ({ services: { broker }, who }: Trusting, issuers: CallerIssuer[]) =>
  json(200, {
    caller_issuers: issuers,
    redirect_uris: Object.fromEntries(
      issuers.map(({ issuer }) => [issuer, ownSignInUri(broker.baseUrl, who.organisationId, issuer)]),
    ),
  });

/** GET /owner/caller-issuers */
export const ownerCallerIssuers = route({
  method: 'GET',
  path: PATH,
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.caller_issuers.list',
  summary: 'The issuers whose assertions about people are trusted, and the redirect URI of each.',
  answers,
  errors: [],
  handle: async (context) => {
    const { services, who } = context;
    const { caller_issuers: issuers } = await readOrganisation(services.broker.store.db, who.organisationId);
    return listed(context, issuers);
  },
});

/** POST /owner/caller-issuers */
export const trustCallerIssuer = route({
  method: 'POST',
  path: PATH,
  auth: 'owner',
  role: 'admin',
  capability: 'owner.caller_issuers.trust',
  summary: 'Trusts an issuer, or trusts it in other terms; by its `issuer`.',
  body: CallerIssuer,
  answers,
  errors: ['invalid_request', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const issuers = await trustIssuer(context.services, changingOwner(context), context.body);
    return listed(context, issuers);
  },
});

/** POST /owner/caller-issuers/remove: the issuer is in the body, because a URL does not fit into a path. */
export const distrustCallerIssuer = route({
  method: 'POST',
  path: `${PATH}/remove`,
  auth: 'owner',
  role: 'admin',
  capability: 'owner.caller_issuers.remove',
  summary: 'Stops trusting an issuer. Tokens that people gave stay, but cannot be used with its assertions.',
  body: z.strictObject({ issuer: z.string().max(2_000).describe('exactly as it is listed') }),
  answers,
  errors: ['invalid_request', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const issuers = await distrustIssuer(context.services, changingOwner(context), context.body.issuer);
    return listed(context, issuers);
  },
});
