/** Access requests of agents, for owners: view and decide. */
import { z } from 'zod';
import { decideRequest, type RequestDecision } from '../../../admin/grants/decide-access-request.ts';
import { listRequests, readRequest } from '../../../admin/grants/list-access-requests.ts';
import type { Broker } from '../../../broker.ts';
import { UUID_PATTERN } from '../../../crypto/ids.ts';
import { type NameOfPlatform, platformNames } from '../../../facts/platform-names.ts';
import { text } from '../../../wire/action.ts';
import { Refusal } from '../../errors.ts';
import {
  AccessRequest,
  accessRequestShown,
  DecidedAccessRequest,
  REQUEST_STATUSES,
  WholeAccessRequest,
} from '../../owned/access-request.ts';
import { grantShown, LastsSeconds, lasting } from '../../owned/grant.ts';
import { changingOwner } from '../../owner-change.ts';
import { pageSize, uuid } from '../../query.ts';
import { json, type Reply } from '../../reply.ts';
import { type Context, route } from '../../route.ts';

const Page = z.object({
  status: z
    .enum(REQUEST_STATUSES, `one of ${REQUEST_STATUSES.join(', ')}`)
    .optional()
    .describe('only those that are in this state'),
  limit: pageSize(200, 50),
  before: uuid('the id of the last request of the page before').optional(),
});

/** GET /owner/access-requests: newest first. */
export const ownerAccessRequests = route({
  method: 'GET',
  path: '/owner/access-requests',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.access_requests.list',
  summary: "The access requests of the organisation's agents, newest first.",
  query: Page,
  answers: {
    200: {
      description: 'A page of access requests.',
      schema: z.object({ access_requests: z.array(AccessRequest), next: z.guid().nullable() }),
    },
  },
  errors: ['invalid_request'],
  handle: async ({ services: { broker }, who, query: { status, limit, before } }) => {
    const now = broker.clock();
    const page = { limit, now, ...(status && { status }), ...(before && { before }) };
    const found = await listRequests(broker, who.organisationId, page);
    const nameOf = await namesFor(broker, who.organisationId, found);
    return json(200, {
      access_requests: found.map((request) => accessRequestShown(request, nameOf, now)),
      next: found.length === limit ? (found.at(-1)?.id ?? null) : null,
    });
  },
});

const namesFor = (
  { store }: Pick<Broker, 'store'>,
  organisationId: string,
  requests: readonly { platform_id: string }[],
): Promise<NameOfPlatform> =>
  platformNames(
    store.db,
    organisationId,
    requests.map(({ platform_id }) => platform_id),
  );

const params = { id: z.guid().describe('the id of the access request') };

const idOf = ({ params }: { params: { id: string } }): string =>
  UUID_PATTERN.test(params.id) ? params.id.toLowerCase() : '';

/** GET /owner/access-requests/{id}: includes what can be granted, for the deciding owner. */
export const ownerAccessRequest = route({
  method: 'GET',
  path: '/owner/access-requests/{id}',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.access_requests.read',
  summary: 'One access request, with the possible and the current grants.',
  params,
  answers: { 200: { description: 'The access request.', schema: WholeAccessRequest } },
  errors: ['not_found'],
  handle: async (context) => {
    const { services, who } = context;
    const { request, platformScopes, connections, grants } = await readRequest(
      services,
      who.organisationId,
      idOf(context),
    );
    const now = services.broker.clock();
    const nameOf = await namesFor(services.broker, who.organisationId, [request]);
    return json(200, {
      ...accessRequestShown(request, nameOf, now),
      platform_scopes: platformScopes,
      connections: connections
        .filter((one) => one.platform_id === request.platform_id)
        .map((one) => ({ connection_id: one.id, label: one.label, default: one.is_default === 1 })),
      grants: grants.map((grant) => grantShown(grant, connections, now)),
    });
  },
});

const note = text(1000).min(1).optional().describe('for the agent to read, and on record');

const Approving = z.strictObject({
  scopes: z.array(text(256).min(1)).min(1).max(500).optional().describe('what to grant; omitted: the requested scope'),
  connection_id: uuid('the connection whose grant gains it').optional(),
  expires_in_seconds: LastsSeconds,
  require_approval: z.boolean().optional().describe('whether every call waits for an approval; left out: as it is'),
  note,
});

/** POST /owner/access-requests/{id}/approve: for admins, because it changes an agent's permissions. */
export const approveAccessRequest = route({
  method: 'POST',
  path: '/owner/access-requests/{id}/approve',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.access_requests.approve',
  summary: 'Approves an access request: the grant gains the scopes immediately.',
  params,
  body: Approving,
  bodyOptional: true,
  answers: {
    200: {
      description: 'The request and the grant as they are now; next_steps says what else the scopes need.',
      schema: DecidedAccessRequest,
    },
  },
  errors: ['invalid_request', 'not_found', 'already_decided', 'conflict', 'request_expired', 'audit_unavailable'],
  handle: async (context) => {
    const { body } = context;
    const granting = {
      ...(body.scopes && { scopes: body.scopes }),
      ...(body.connection_id && { connectionId: body.connection_id }),
      ...lasting(body.expires_in_seconds),
      ...(body.require_approval !== undefined && { requireApproval: body.require_approval }),
    };
    return await decide(context, { status: 'approved', note: body.note ?? null, granting });
  },
});

/** POST /owner/access-requests/{id}/deny */
export const denyAccessRequest = route({
  method: 'POST',
  path: '/owner/access-requests/{id}/deny',
  auth: 'owner',
  role: 'approver',
  capability: 'owner.access_requests.deny',
  summary: 'Denies an access request.',
  params,
  body: z.strictObject({ note }),
  bodyOptional: true,
  answers: { 200: { description: 'The request as it is now.', schema: DecidedAccessRequest } },
  errors: ['invalid_request', 'not_found', 'already_decided', 'request_expired', 'audit_unavailable'],
  handle: async (context) => await decide(context, { status: 'denied', note: context.body.note ?? null }),
});

async function decide(
  context: Context<'owner', unknown, URLSearchParams, 'id'>,
  decision: RequestDecision,
): Promise<Reply> {
  const { services } = context;
  const decided = await decideRequest(services, changingOwner(context), idOf(context), decision);
  switch (decided.kind) {
    case 'already_decided':
      throw new Refusal('already_decided', `This access request was ${decided.status} already.`, {
        extra: { status: decided.status },
      });
    case 'expired':
      throw new Refusal(
        'request_expired',
        'This request is no longer pending: it expired, or its agent was revoked or expired.',
      );
    case 'decided': {
      const now = services.broker.clock();
      const { request, grant, connections, remaining } = decided;
      const nameOf = await namesFor(services.broker, context.who.organisationId, [request]);
      if (!grant) return json(200, accessRequestShown(request, nameOf, now));
      return json(200, {
        ...accessRequestShown(request, nameOf, now),
        grant: grantShown(grant, connections, now),
        next_steps: remaining,
      });
    }
  }
}
