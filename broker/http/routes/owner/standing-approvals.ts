/** Standing approvals: calls that an owner allowed in advance. */
import { z } from 'zod';
import { readStandingApprovals, revokeStandingApproval } from '../../../admin/policies/standing-approvals.ts';
import { storedUuid } from '../../../crypto/ids.ts';
import { AUDIT_FILTER } from '../../audit-row.ts';
import { changingOwner } from '../../owner-change.ts';
import { pageSize, uuid } from '../../query.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';
import { StandingShown, shownStanding } from '../../standing.ts';

/** GET /owner/standing-approvals: newest first. */
export const ownerStandingApprovals = route({
  method: 'GET',
  path: '/owner/standing-approvals',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.standing_approvals.list',
  summary: 'The standing approvals of the organisation, newest first.',
  query: z.object({
    status: z
      .enum(['in_force', 'all'], 'one of in_force, all')
      .default('in_force')
      .describe('all: those that are over, too, which stay for 90 days'),
    agent: AUDIT_FILTER.agent,
    limit: pageSize(200, 50),
    before: uuid('the id of the last standing approval of the page before').optional(),
  }),
  answers: {
    200: {
      description: 'A page of standing approvals.',
      schema: z.object({ standing_approvals: z.array(StandingShown), next: z.guid().nullable() }),
    },
  },
  errors: ['invalid_request'],
  handle: async ({ services: { broker }, who, query: { status, ...page } }) => {
    const read = await readStandingApprovals(broker, who.organisationId, { ...page, all: status === 'all' });
    return json(200, { standing_approvals: read.approvals.map(shownStanding), next: read.next });
  },
});

/** DELETE /owner/standing-approvals/{id} */
export const revokeOwnerStandingApproval = route({
  method: 'DELETE',
  path: '/owner/standing-approvals/{id}',
  auth: 'owner',
  role: 'approver',
  capability: 'owner.standing_approvals.revoke',
  summary: 'Revokes a standing approval: calls are held again from the next one on.',
  answers: { 200: { description: 'The standing approval, ended.', schema: StandingShown } },
  errors: ['not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const id = storedUuid(context.params.id);
    return json(200, shownStanding(await revokeStandingApproval(context.services, changingOwner(context), id)));
  },
});
