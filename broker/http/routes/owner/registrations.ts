/** Registrations, for owners: view and decide. */
import { z } from 'zod';
import {
  listRegistrations,
  loadRegistration,
  loadRegistrationByToken,
  readRegistration,
} from '../../../admin/registrations/read-registration.ts';
import { decideRegistration, MAX_REJECTED, rejectNetwork } from '../../../admin/registrations/registration-decision.ts';
import { storedUuid } from '../../../crypto/ids.ts';
import {
  ApprovedRegistration,
  ApprovingBody,
  DECISION_ERRORS,
  Registration,
  registrationShown,
  WholeRegistration,
} from '../../owned/registration.ts';
import { changingOwner } from '../../owner-change.ts';
import { pageSize, uuid } from '../../query.ts';
import { REGISTRATION_STATUSES, Token } from '../../registration-request.ts';
import { json, type Reply } from '../../reply.ts';
import { type Context, route } from '../../route.ts';

const Page = z.object({
  status: z
    .enum(REGISTRATION_STATUSES, `one of ${REGISTRATION_STATUSES.join(', ')}`)
    .optional()
    .describe('only those that are in this state'),
  limit: pageSize(200, 50),
  before: uuid('the id of the last registration of the page before').optional(),
});

/** GET /owner/registrations: newest first; deleted a day after they expired. */
export const ownerRegistrations = route({
  method: 'GET',
  path: '/owner/registrations',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.registrations.list',
  summary: 'Agents that registered themselves, newest first.',
  query: Page,
  answers: {
    200: {
      description: 'A page of registrations.',
      schema: z.object({ registrations: z.array(Registration), next: z.guid().nullable() }),
    },
  },
  errors: ['invalid_request'],
  handle: async ({ services: { broker }, who, query }) => {
    const { registrations, next } = await listRegistrations(broker, who.owner, query);
    const now = broker.clock();
    return json(200, { registrations: registrations.map((one) => registrationShown(one, now)), next });
  },
});

const params = { id: z.guid().describe('the id of the registration') };

/** GET /owner/registrations/{id} */
export const ownerRegistration = route({
  method: 'GET',
  path: '/owner/registrations/{id}',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.registrations.read',
  summary: 'One registration, with what an approval would make of it.',
  params,
  answers: { 200: { description: 'The registration.', schema: WholeRegistration } },
  errors: ['not_found'],
  handle: async ({ services: { broker }, who, params }) => {
    const one = await readRegistration(broker, who.owner, storedUuid(params.id));
    const { unknownScopes: unknown_scopes, policy, namesake } = one;
    return json(200, {
      ...registrationShown(one, broker.clock()),
      unknown_scopes,
      policy: policy ? { id: policy.id, name: policy.name, version: policy.version } : null,
      namesake,
    });
  },
});

const APPROVED = {
  200: {
    description: 'The agent is pending; it can collect its key, and is active then.',
    schema: ApprovedRegistration,
  },
};
const REJECTED = { 200: { description: 'The registration as it is now.', schema: Registration } };
const approves = 'Approves an agent registration, with all or some of the requested scopes.';
const rejects = 'Rejects an agent registration.';
const deciding = {
  method: 'POST',
  auth: 'owner',
  role: 'approver',
  bodyOptional: true,
  errors: DECISION_ERRORS,
} as const;
const NoWords = z.strictObject({});

/**
 * POST /owner/registrations/{id}/approve and /reject, and the same with the token in place of the id, as in the specification: POST
 * /v1/register/approve/{token} and /v1/register/reject/{token}.
 */
export const decideRegistrations = [
  route({
    ...deciding,
    path: '/owner/registrations/{id}/approve',
    capability: 'owner.registrations.approve',
    summary: approves,
    params,
    body: ApprovingBody,
    answers: APPROVED,
    handle: async (context) => await decide(context, await owned(context), approving(context.body)),
  }),
  route({
    ...deciding,
    path: '/owner/registrations/{id}/reject',
    capability: 'owner.registrations.reject',
    summary: rejects,
    params,
    body: NoWords,
    answers: REJECTED,
    handle: async (context) => await decide(context, await owned(context), { status: 'rejected' }),
  }),
  route({
    ...deciding,
    path: '/v1/register/approve/{token}',
    capability: 'registrations.approve',
    summary: approves,
    params: { token: Token },
    body: ApprovingBody,
    answers: APPROVED,
    handle: async (context) => await decide(context, await byToken(context), approving(context.body)),
  }),
  route({
    ...deciding,
    path: '/v1/register/reject/{token}',
    capability: 'registrations.reject',
    summary: rejects,
    params: { token: Token },
    body: NoWords,
    answers: REJECTED,
    handle: async (context) => await decide(context, await byToken(context), { status: 'rejected' }),
  }),
];

/** POST /owner/registrations/reject: for an inbox that a stranger has filled. */
export const rejectRegistrations = route({
  method: 'POST',
  path: '/owner/registrations/reject',
  auth: 'owner',
  role: 'approver',
  capability: 'owner.registrations.reject_all',
  summary: `Rejects the pending registrations from one network, oldest first, ${MAX_REJECTED} at most.`,
  body: z.strictObject({
    network: z.string().min(1).max(64).describe('of a registration that waits, as the list has it'),
  }),
  answers: {
    200: {
      description: 'Which were rejected, and whether more wait: then ask again.',
      schema: z.object({ rejected: z.array(z.guid()), remaining: z.boolean() }),
    },
  },
  errors: ['invalid_request', 'audit_unavailable'],
  handle: async (context) => {
    return json(200, await rejectNetwork(context.services, changingOwner(context), context.body.network));
  },
});

const owned = ({ services, who, params }: Context<'owner', unknown, URLSearchParams, 'id'>) =>
  loadRegistration(services.broker, who.organisationId, storedUuid(params.id));

const byToken = ({ services, params }: Context<'owner', unknown, URLSearchParams, 'token'>) =>
  loadRegistrationByToken(services.broker, params.token);

const approving = ({ scopes, policy, name }: z.output<typeof ApprovingBody>) => ({
  status: 'approved' as const,
  ...(scopes && { scopes }),
  ...(policy !== undefined && { policy }),
  ...(name !== undefined && { name }),
});

async function decide(
  context: Context<'owner'>,
  found: Parameters<typeof decideRegistration>[2],
  word: Parameters<typeof decideRegistration>[3],
): Promise<Reply> {
  const { services } = context;
  const { registration, dropped } = await decideRegistration(services, changingOwner(context), found, word);
  return json(200, { ...registrationShown(registration, services.broker.clock()), ...(dropped && { dropped }) });
}
