/** Decides several held calls, each of which the owner was shown. */
import { z } from 'zod';
import { decideMany, MAX_DECIDED, type SettledItem } from '../../../approvals/decide-many.ts';
import type { Broker } from '../../../broker.ts';
import { Note, RequestHash } from '../../decision-answers.ts';
import { REPLAY_WAIT_MS, stated } from '../../held-call.ts';
import { HeldCallStated } from '../../held-call-schema.ts';
import { changingOwner } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

const Item = z.strictObject({
  approval_id: z.guid().transform((id) => id.toLowerCase()),
  request_hash: RequestHash.describe('of the request that was shown: another one is not decided'),
});

const OUTCOMES = [
  'approved',
  'denied',
  'approved_in_part',
  'already_decided',
  'request_changed',
  'approval_expired',
  'not_found',
  'not_decided',
] as const;

const Settled = z
  .object({
    approval_id: z.guid(),
    outcome: z
      .enum(OUTCOMES)
      .describe(
        'approved, denied: by this request; approved_in_part: others have to approve, too; else it was not decided by it',
      ),
    detail: z.string().nullable().describe('why it was not decided'),
    decided_by_email: z.string().nullable().describe('who decided it, now or before'),
    approval: HeldCallStated.nullable().describe(
      'as it is now; executed_at is null while the platform has not answered; null: there is none, or the store is unavailable',
    ),
  })
  .meta({ id: 'SettledHeldCall' });

/** POST /owner/approvals/decide: returns the result of each call; a failure does not stop the others. */
export const decideManyApprovals = route({
  method: 'POST',
  path: '/owner/approvals/decide',
  auth: 'owner',
  role: 'approver',
  capability: 'owner.approvals.decide_many',
  summary: `Approves or denies up to ${MAX_DECIDED} held calls, and returns the result of each.`,
  body: z.strictObject({
    decision: z.enum(['approve', 'deny']),
    note: Note.optional(),
    items: z
      .array(Item)
      .min(1)
      .max(MAX_DECIDED, `at most ${MAX_DECIDED}`)
      .refine((items) => new Set(items.map((one) => one.approval_id)).size === items.length, 'names a call twice')
      .describe('in the order in which they are decided'),
  }),
  answers: {
    200: {
      description: 'What became of each, in the order of the request.',
      schema: z.object({ results: z.array(Settled) }),
    },
  },
  errors: ['invalid_request'],
  handle: async (context) => {
    const { services, body } = context;
    const { decision, note, items } = body;
    const ownerDecision = {
      status: decision === 'approve' ? ('approved' as const) : ('denied' as const),
      ...(note !== undefined && { note }),
      items: items.map((one) => ({ approvalId: one.approval_id, requestHash: one.request_hash })),
    };
    const settled = await decideMany(services, changingOwner(context), ownerDecision, {
      timeoutMs: REPLAY_WAIT_MS,
    });
    const results = settled.map((one) => shown(services.broker, one, ownerDecision.status));
    return json(200, { results: await Promise.all(results) });
  },
});

const shown = async (
  broker: Pick<Broker, 'clock' | 'store'>,
  { approvalId, kind, held }: SettledItem,
  decision: 'approved' | 'denied',
) => ({
  approval_id: approvalId,
  outcome: kind === 'decided' ? decision : CODES[kind],
  detail: detailOf(kind, held),
  decided_by_email: held?.decided_by_email ?? null,
  approval: held ? await stated(broker, held) : null,
});

const CODES = {
  approved_in_part: 'approved_in_part',
  already_decided: 'already_decided',
  changed: 'request_changed',
  expired: 'approval_expired',
  not_found: 'not_found',
  not_decided: 'not_decided',
} as const;

function detailOf(kind: SettledItem['kind'], held: SettledItem['held']): string | null {
  switch (kind) {
    case 'decided':
      return null;
    case 'approved_in_part':
      return 'Your approval is recorded. The call still waits: somebody else has to approve it, too.';
    case 'already_decided':
      return `It was ${held?.status ?? 'decided'} already${held?.decided_by_email ? ` by ${held.decided_by_email}` : ''}.`;
    case 'changed':
      return 'It is not the request that you were shown. Load it and look again.';
    case 'expired':
      return 'It is no longer pending: it expired, or its agent was revoked or expired.';
    case 'not_found':
      return 'The organisation has no such held call.';
    case 'not_decided':
      if (held === undefined)
        return 'The store became unavailable, so it is unknown whether this call is still pending. Load it and look again.';
      return 'This call was not decided: the calls before it took too long, nothing could be recorded, or you are no longer allowed to decide. It is still pending: decide it again.';
  }
}
