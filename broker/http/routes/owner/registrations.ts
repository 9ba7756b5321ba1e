/** Registrations, as owners see and decide them. */
import { z } from 'zod';
import { UUID_PATTERN } from '../../../crypto/ids.ts';
import { findRegistration, listRegistrations, type ShownRegistration } from '../../../store/registrations.ts';
import { Refusal } from '../../errors.ts';
import {
  ApprovedRegistration,
  ApprovingBody,
  DECISION_ERRORS,
  decideAs,
  Registration,
  registrationShown,
  WholeRegistration,
  wholeRegistration,
} from '../../owned-registration.ts';
import { pageSize, uuid } from '../../query.ts';
import { loadRegistration, REGISTRATION_STATUSES, Token } from '../../registering.ts';
import { json } from '../../reply.ts';
import { type Context, route } from '../../route.ts';

const Page = z.object({
  status: z
    .enum(REGISTRATION_STATUSES, `one of ${REGISTRATION_STATUSES.join(', ')}`)
    .optional()
    .describe('only those that are in this state'),
  limit: pageSize(200, 50),
  before: uuid('the id of the last registration of the page before').optional(),
});

/** GET /owner/registrations: newest first; they are forgotten a day after their time was over. */
export const ownerRegistrations = route({
  method: 'GET',
  path: '/owner/registrations',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.registrations.list',
  summary: 'Agents that asked to be let in, newest first.',
  query: Page,
  answers: {
    200: {
      description: 'A page of registrations.',
      schema: z.object({ registrations: z.array(Registration), next: z.guid().nullable() }),
    },
  },
  errors: ['invalid_request'],
  handle: async ({ services: { broker }, who, query: { status, limit, before } }) => {
    const now = broker.clock();
    const page = { limit, now, ...(status && { status }), ...(before && { before }) };
    const found = await listRegistrations(broker.store.db, who.organisationId, page);
    return json(200, {
      registrations: found.map((one) => registrationShown(one, who.owner, now)),
      next: found.length === limit ? (found.at(-1)?.id ?? null) : null,
    });
  },
});

const params = { id: z.guid().describe('the id of the registration') };

async function loadOwned({
  services,
  who,
  params,
}: Context<'owner', unknown, URLSearchParams, 'id'>): Promise<ShownRegistration> {
  const id = UUID_PATTERN.test(params.id) ? params.id.toLowerCase() : '';
  const found = await findRegistration(services.broker.store.db, who.organisationId, id);
  if (!found) throw new Refusal('not_found', 'The organisation has no such registration.');
  return found;
}

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
  handle: async (context) =>
    json(200, await wholeRegistration(context.services.broker, await loadOwned(context), context.who.owner)),
});

const APPROVED = {
  200: {
    description: 'The agent is pending; it can collect its key, and is active then.',
    schema: ApprovedRegistration,
  },
};
const REJECTED = { 200: { description: 'The registration as it is now.', schema: Registration } };
const approves = 'Lets a registered agent in, with what it asked for or with less.';
const rejects = 'Turns a registered agent away.';
const deciding = {
  method: 'POST',
  auth: 'owner',
  role: 'approver',
  bodyOptional: true,
  errors: DECISION_ERRORS,
} as const;
const NoWords = z.strictObject({});

/**
 * POST /owner/registrations/{id}/approve and /reject, and the same with the token instead of the id, as the specification
 * has it: POST /v1/register/approve/{token} and /v1/register/reject/{token}.
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
    handle: async (context) => await decideAs(context, await loadOwned(context), approving(context.body)),
  }),
  route({
    ...deciding,
    path: '/owner/registrations/{id}/reject',
    capability: 'owner.registrations.reject',
    summary: rejects,
    params,
    body: NoWords,
    answers: REJECTED,
    handle: async (context) => await decideAs(context, await loadOwned(context), { status: 'rejected' }),
  }),
  route({
    ...deciding,
    path: '/v1/register/approve/{token}',
    capability: 'registrations.approve',
    summary: approves,
    params: { token: Token },
    body: ApprovingBody,
    answers: APPROVED,
    handle: async (context) => await decideAs(context, await loadByToken(context), approving(context.body)),
  }),
  route({
    ...deciding,
    path: '/v1/register/reject/{token}',
    capability: 'registrations.reject',
    summary: rejects,
    params: { token: Token },
    body: NoWords,
    answers: REJECTED,
    handle: async (context) => await decideAs(context, await loadByToken(context), { status: 'rejected' }),
  }),
];

const loadByToken = ({ services, params }: Context<'owner'>) => loadRegistration(services.broker, params.token);

const approving = ({ scopes, policy, name }: z.output<typeof ApprovingBody>) => ({
  status: 'approved' as const,
  ...(scopes && { scopes }),
  ...(policy !== undefined && { policy }),
  ...(name !== undefined && { name }),
});
