/** Held calls, as owners see and decide them. */
import { z } from 'zod';
import { decideHeld } from '../../../approvals/decide.ts';
import { readHeldRequest } from '../../../approvals/held-call.ts';
import { shownRequest } from '../../../approvals/shown-request.ts';
import { UUID_PATTERN } from '../../../crypto/ids.ts';
import { withTimeout } from '../../../runtime/waits.ts';
import type { Services } from '../../../services.ts';
import { findApproval } from '../../../store/approvals.ts';
import { findHeldCall, type HeldCall, listHeldCalls } from '../../../store/held-calls.ts';
import { text } from '../../../wire/action.ts';
import { AUDIT_FILTER } from '../../audit-row.ts';
import { Refusal } from '../../errors.ts';
import { REPLAY_WAIT_MS, stated, summary } from '../../held-call.ts';
import { HeldCallOpened, HeldCallStated, HeldCallSummary } from '../../held-call-schema.ts';
import { howOf } from '../../owner-change.ts';
import { pageSize, uuid } from '../../query.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

const STATUSES = ['pending', 'approved', 'denied', 'expired'] as const;

const Page = z.object({
  status: z
    .enum(STATUSES, `one of ${STATUSES.join(', ')}`)
    .optional()
    .describe('only those that are in this state'),
  agent: AUDIT_FILTER.agent,
  platform: z.string().max(255).optional().describe('only those of this platform'),
  scope: z.string().max(255).optional().describe('only those of this scope'),
  limit: pageSize(200, 50),
  before: uuid('the id of the last held call of the page before').optional(),
});

/** GET /owner/approvals: newest first; pending ones oldest first, because these run out first. */
export const ownerApprovals = route({
  method: 'GET',
  path: '/owner/approvals',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.approvals.list',
  summary: "The organisation's held calls, newest first; with `status=pending` oldest first.",
  query: Page,
  answers: {
    200: {
      description: 'A page of held calls, without their bodies.',
      schema: z.object({ approvals: z.array(HeldCallSummary), next: z.guid().nullable() }),
    },
  },
  errors: ['invalid_request'],
  handle: async ({ services: { broker }, who, query }) => {
    const page = { ...query, now: broker.clock() };
    const found = await listHeldCalls(broker.store.db, who.organisationId, page);
    return json(200, {
      approvals: found.map((held) => summary(broker, held)),
      next: found.length === query.limit ? (found.at(-1)?.id ?? null) : null,
    });
  },
});

async function loadHeld({ broker }: Services, organisationId: string, id: string): Promise<HeldCall> {
  const held = UUID_PATTERN.test(id)
    ? await findHeldCall(broker.store.db, organisationId, id.toLowerCase())
    : undefined;
  if (!held) throw new Refusal('not_found', 'The organisation has no such held call.');
  return held;
}

/** GET /owner/approvals/{id}: the exact request, opened, for whoever decides. */
export const ownerApproval = route({
  method: 'GET',
  path: '/owner/approvals/{id}',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.approvals.read',
  summary: 'One held call with the exact request that would be sent.',
  answers: { 200: { description: 'The held call.', schema: HeldCallOpened } },
  errors: ['not_found'],
  handle: async ({ services, who, params }) => {
    const held = await loadHeld(services, who.organisationId, params.id);
    const opened = readHeldRequest(services, held);
    // Altered in the store: there is nothing to show, and an approval of it comes to nothing.
    const request = opened ? await shownRequest(services, held, opened) : null;
    const facts = summary(services.broker, held);
    const owned_by_me = held.agent_owner_id === who.owner.id;
    return json(200, { ...facts, agent: { ...facts.agent, owned_by_me }, request });
  },
});

const Word = z.strictObject({
  note: text(1000).min(1).optional().describe('for the agent to read, and on record'),
  request_hash: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'must be the request_hash of the held call')
    .optional()
    .describe('of the request that was shown: another one is not decided'),
});

const DECISIONS = [
  { verb: 'approve', status: 'approved', summary: 'Approves a held call, which is then made at most once.' },
  { verb: 'deny', status: 'denied', summary: 'Denies a held call, which is then never made.' },
] as const;

/** So many are denied for one request: each has its own row and receipt. */
const DENIED_AT_ONCE = 200;

/** POST /owner/approvals/deny: for an inbox that one agent has filled. */
export const denyApprovals = route({
  method: 'POST',
  path: '/owner/approvals/deny',
  auth: 'owner',
  role: 'approver',
  capability: 'owner.approvals.deny_all',
  summary: `Denies the pending calls of an agent, oldest first, ${DENIED_AT_ONCE} at most.`,
  body: z.strictObject({
    agent: AUDIT_FILTER.agent.unwrap(),
    platform: Page.shape.platform,
    scope: Page.shape.scope,
    note: Word.shape.note,
  }),
  answers: {
    200: {
      description: 'Which calls were denied, and whether more wait: then ask again.',
      schema: z.object({ denied: z.array(z.guid()), remaining: z.boolean() }),
    },
  },
  errors: ['invalid_request', 'audit_unavailable'],
  handle: async (context) => {
    const { services, who, body, correlationId } = context;
    const { store, clock } = services.broker;
    const { note, ...filter } = body;
    const page = { ...filter, status: 'pending', limit: DENIED_AT_ONCE + 1, now: clock() } as const;
    const waiting = await listHeldCalls(store.db, who.organisationId, page);
    const denied: string[] = [];
    const word = { status: 'denied', how: howOf(context), ...(note !== undefined && { note }) } as const;
    for (const { id } of waiting.slice(0, DENIED_AT_ONCE)) {
      const { kind } = await decideHeld(services, who.owner, id, word, { correlationId });
      // Whoever else decided it, or its time, was first.
      if (kind === 'decided') denied.push(id);
    }
    return json(200, { denied, remaining: waiting.length > DENIED_AT_ONCE });
  },
});

/** POST /owner/approvals/{id}/approve and /deny. The call does not depend on whether anybody waits for this answer. */
export const decideApprovals = DECISIONS.map(({ verb, status, summary: what }) =>
  route({
    method: 'POST',
    path: `/owner/approvals/{id}/${verb}`,
    auth: 'owner',
    role: 'approver',
    capability: `owner.approvals.${verb}`,
    summary: what,
    body: Word,
    bodyOptional: true,
    answers: {
      200: {
        description: 'The held call as it is now; executed_at is null while the platform has not answered.',
        schema: HeldCallStated,
      },
    },
    errors: [
      'invalid_request',
      'not_found',
      'already_decided',
      'request_changed',
      'approval_expired',
      'audit_unavailable',
    ],
    handle: async (context) => {
      const { services, who, params, body, correlationId } = context;
      const { broker } = services;
      const id = UUID_PATTERN.test(params.id) ? params.id.toLowerCase() : '';
      const word = {
        status,
        how: howOf(context),
        ...(body.note !== undefined && { note: body.note }),
        ...(body.request_hash !== undefined && { requestHash: body.request_hash }),
      } as const;
      const decided = await decideHeld(services, who.owner, id, word, { correlationId });
      switch (decided.kind) {
        case 'not_found':
          throw new Refusal('not_found', 'The organisation has no such held call.');
        case 'already_decided':
          throw new Refusal('already_decided', `This call was ${decided.status} already.`, {
            extra: { status: decided.status },
          });
        case 'expired':
          throw new Refusal(
            'approval_expired',
            'This call is no longer pending: it expired, or its agent was revoked or expired.',
          );
        case 'changed':
          throw new Refusal('request_changed', 'This is not the request that you were shown. Load it and look again.', {
            extra: { request_hash: decided.requestHash },
          });
        case 'decided': {
          await withTimeout(decided.replayed, REPLAY_WAIT_MS);
          const now = await findApproval(broker.store.db, who.organisationId, id);
          return json(200, stated(now ?? decided.approval, broker.clock()));
        }
      }
    },
  }),
);
