/** Issuers whose assertions about people the organisation trusts. */
import { z } from 'zod';
import { distrustIssuer, trustIssuer } from '../../../admin/caller-issuers.ts';
import { readOrganisation } from '../../../admin/organisation.ts';
import { CallerIssuer } from '../../../people/caller-issuer.ts';
import { changingOwner } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

const PATH = '/owner/caller-issuers';
const answers = {
  200: { description: 'All that are trusted now.', schema: z.object({ caller_issuers: z.array(CallerIssuer) }) },
};

/** GET /owner/caller-issuers */
export const ownerCallerIssuers = route({
  method: 'GET',
  path: PATH,
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.caller_issuers.list',
  summary: 'The issuers whose assertions about people are believed.',
  answers,
  errors: [],
  handle: async ({ services: { broker }, who }) => {
    const { caller_issuers: issuers } = await readOrganisation(broker.store.db, who.organisationId);
    return json(200, { caller_issuers: issuers });
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
    return json(200, { caller_issuers: issuers });
  },
});

/** POST /owner/caller-issuers/remove: an address is no part of a path. */
export const distrustCallerIssuer = route({
  method: 'POST',
  path: `${PATH}/remove`,
  auth: 'owner',
  role: 'admin',
  capability: 'owner.caller_issuers.remove',
  summary: 'Trusts an issuer no more. What people gave stays, and cannot be used by its assertions.',
  body: z.strictObject({ issuer: z.string().max(2_000).describe('exactly as it is listed') }),
  answers,
  errors: ['invalid_request', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const issuers = await distrustIssuer(context.services, changingOwner(context), context.body.issuer);
    return json(200, { caller_issuers: issuers });
  },
});
