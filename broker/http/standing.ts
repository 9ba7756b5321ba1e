/** Schemas of standing approvals: what is requested with an approval, what can be selected, and what exists. */
import { z } from 'zod';
import type { ReadStandingApproval } from '../admin/policies/standing-approvals.ts';
import type { PreparedStanding } from '../approvals/make-standing.ts';
import { type StandingOffer, standingOffer } from '../approvals/standing-offer.ts';
import { MAX_DURATION_MS, MAX_SESSION_MS, MAX_USES, type StandingRequest } from '../approvals/standing-request.ts';
import { statusAt } from '../audit/approval-state.ts';
import type { Services } from '../services.ts';
import type { HeldCall } from '../store/held-calls.ts';
import { text } from '../wire/action.ts';
import { Refusal } from './errors.ts';
import { instant } from './reply.ts';
import { SentenceShown, shownSentence } from './sentence.ts';

const Member = text(200).min(1);

/** The standing approval that is requested with an approval. */
export const StandingAsked = z
  .strictObject({
    count: z.int().min(1).max(MAX_USES).describe('how many calls like this one'),
    until: z.iso.datetime().optional().describe('its end, at most 30 days from now'),
    for_seconds: z
      .int()
      .min(1)
      .max(MAX_DURATION_MS / 1000)
      .optional()
      .describe('its end, in place of until'),
    session: z
      .literal(true)
      .optional()
      .describe('in place of an end: only in the session of the held call, and 12 hours at most'),
    free: z
      .array(
        z.strictObject({
          member: Member.describe('one of standing.members of the held call'),
          at_most: z.number().positive().optional().describe('of a number; by default what the held call has'),
        }),
      )
      .max(20)
      .default([])
      .describe('the members that may differ; everything else is as in the held call'),
  })
  .describe('also lets the next calls pass that are like this one');

/** Converts it from its form on the wire. */
export const askedStanding = ({
  count,
  until,
  for_seconds,
  session,
  free,
}: z.output<typeof StandingAsked>): StandingRequest => ({
  count,
  ...(until !== undefined && { until: Date.parse(until) }),
  ...(for_seconds !== undefined && { forSeconds: for_seconds }),
  ...(session && { session }),
  free: free.map(({ member, at_most }) => ({ member, ...(at_most !== undefined && { atMost: at_most }) })),
});

/** Returns why the decision was not made. */
export function standingRefused(prepared: Exclude<PreparedStanding, { kind: 'ready' | 'not_found' }>): Refusal {
  return prepared.kind === 'needs_passkey'
    ? new Refusal(
        'verification_failed',
        'This organisation demands that a passkey verifies who approves calls to come. Sign the terms with a passkey: POST /owner/passkeys/assert/begin with purpose standing.',
      )
    : new Refusal('invalid_request', prepared.detail);
}

export const OfferShown = z
  .object({
    possible: z.boolean(),
    why: z.string().nullable().describe('why this call can only be approved by itself'),
    members: z
      .array(
        z.object({
          member: z.string(),
          value: z.unknown().describe('in this call'),
          at_most: z.number().nullable().describe('of a number: the most that it may be'),
        }),
      )
      .describe('which members may differ, where they are ticked'),
    session: z.boolean().describe('whether it may be for the session of this call'),
    most_uses: z.int(),
    longest_seconds: z.int(),
    longest_session_seconds: z.int(),
  })
  .nullable()
  .describe('whether calls like this one may be approved with it; null: it can no longer be decided');

/** Returns what can be offered with the approval of a pending call. */
export async function shownOffer(services: Services, held: HeldCall): Promise<z.output<typeof OfferShown>> {
  if (statusAt(held, services.broker.clock()) !== 'pending') return null;
  return offerOnWire(await standingOffer(services, held));
}

const offerOnWire = (offer: StandingOffer): z.output<typeof OfferShown> => ({
  possible: offer.possible,
  why: offer.possible ? null : offer.why,
  members: offer.possible
    ? offer.members.map(({ member, value, atMost }) => ({ member, value, at_most: atMost ?? null }))
    : [],
  session: offer.possible && offer.basis.sessionId !== null,
  most_uses: MAX_USES,
  longest_seconds: MAX_DURATION_MS / 1000,
  longest_session_seconds: MAX_SESSION_MS / 1000,
});

export const StandingShown = z
  .object({
    id: z.guid(),
    status: z.enum(['in_force', 'ended', 'expired']),
    sentence: z.string().nullable().describe('what it allows, as text; null: it was altered in the store'),
    call: SentenceShown.nullable().describe('what the call does that it was made from'),
    agent: z.object({ id: z.guid(), agent_id: z.string(), name: z.string() }),
    platform: z.string(),
    connection: z.object({ connection_id: z.guid(), label: z.string().nullable() }),
    scope: z.string(),
    method: z.string().nullable(),
    path: z.string().nullable(),
    free: z.array(z.object({ member: z.string(), at_most: z.number().nullable() })),
    approval_id: z.guid().describe('the held call that it was made from'),
    session_id: z.string().nullable().describe('null: any session'),
    count: z.int(),
    left: z.int(),
    expires_at: z.iso.datetime(),
    terms_hash: z.string(),
    decided_by: z.guid(),
    decided_by_email: z.string().nullable(),
    how: z.enum(['console', 'api', 'passkey']),
    created_at: z.iso.datetime(),
    ended_at: z.iso.datetime().nullable(),
    ended_because: z
      .enum(['owner', 'used', 'agent', 'grant'])
      .nullable()
      .describe(
        'owner: revoked by an owner; used: all uses were made; agent, grant: the agent or the grant was revoked',
      ),
  })
  .meta({ id: 'StandingApproval' });

export const shownStanding = ({ row, status, terms, call }: ReadStandingApproval): z.output<typeof StandingShown> => ({
  id: row.id,
  status,
  sentence: terms?.sentence ?? null,
  call: call && shownSentence(call),
  agent: { id: row.agent_id, agent_id: row.agent_public_id, name: row.agent_name },
  platform: row.platform_id,
  connection: { connection_id: row.connection_id, label: row.connection_label },
  scope: row.scope,
  method: terms?.basis.written.method ?? null,
  path: terms?.basis.written.path ?? null,
  free: terms?.free.map(({ member, atMost }) => ({ member, at_most: atMost ?? null })) ?? [],
  approval_id: row.approval_id,
  session_id: row.session_id,
  count: row.uses,
  left: row.uses_left,
  expires_at: new Date(row.expires_at).toISOString(),
  terms_hash: row.terms_hash,
  decided_by: row.decided_by,
  decided_by_email: row.decided_by_email,
  how: row.decided_how,
  created_at: new Date(row.created_at).toISOString(),
  ended_at: instant(row.ended_at),
  ended_because: row.ended_because,
});
