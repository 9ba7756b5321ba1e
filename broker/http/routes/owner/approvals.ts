/** Held calls, for owners: view and decide. */
import { z } from 'zod';
import { correctHeld } from '../../../admin/correct-held.ts';
import { connectionNote } from '../../../approvals/connection-note.ts';
import { decideHeld } from '../../../approvals/decide.ts';
import { denyWaiting, MAX_DENIED } from '../../../approvals/deny-waiting.ts';
import { prepareStanding } from '../../../approvals/make-standing.ts';
import { decideByPasskey } from '../../../approvals/passkeys/decision.ts';
import { platformMessage } from '../../../approvals/platform-message.ts';
import { askedOf, findHeld, isCorrectable, listHeld, openHeld } from '../../../approvals/read-held.ts';
import { storedUuid } from '../../../crypto/ids.ts';
import { platformNames } from '../../../facts/platform-names.ts';
import type { JsonObject } from '../../../policy/facts.ts';
import { ObjectBody, text } from '../../../wire/action.ts';
import { AUDIT_FILTER } from '../../audit-row.ts';
import { afterDeciding, Note, RequestHash, unknownHeldCall } from '../../decision-answers.ts';
import { summary } from '../../held-call.ts';
import { HeldCallDecided, HeldCallOpened, HeldCallSummary } from '../../held-call-schema.ts';
import { changingOwner, howOf } from '../../owner-change.ts';
import { pageSize, uuid } from '../../query.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';
import { askedStanding, StandingAsked, shownOffer, standingRefused } from '../../standing.ts';
import { AuthenticationResponse } from '../../webauthn-json.ts';

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

/** GET /owner/approvals: newest first; pending ones oldest first, because these expire first. */
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
  handle: async ({ services, who, query }) => {
    const { held, next } = await listHeld(services.broker, who.organisationId, query);
    const ids = held.map(({ platform_id }) => platform_id);
    const nameOf = await platformNames(services.broker.store.db, who.organisationId, ids);
    return json(200, { approvals: await Promise.all(held.map((one) => summary(services, one, nameOf))), next });
  },
});

/** GET /owner/approvals/{id}: the exact request, opened, for the deciding owner. */
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
    const held = await findHeld(services.broker.store.db, who.organisationId, storedUuid(params.id));
    if (!held) throw unknownHeldCall();
    const request = await openHeld(services, held);
    const nameOf = await platformNames(services.broker.store.db, who.organisationId, [held.platform_id]);
    const facts = await summary(services, held, nameOf);
    const owned_by_me = held.agent_owner_id === who.owner.id;
    return json(200, {
      ...facts,
      agent: { ...facts.agent, owned_by_me },
      request,
      asked: askedOf(services, held),
      correctable: isCorrectable(services, held),
      connection_note: await connectionNote(services, held),
      platform_message: platformMessage(services.broker, held),
      standing: await shownOffer(services, held),
    });
  },
});

const Word = z.strictObject({
  note: Note.optional(),
  request_hash: RequestHash.optional().describe('of the request that was shown: another one is not decided'),
  assertion: AuthenticationResponse.optional().describe(
    'by a passkey of this owner, to a challenge of POST /owner/passkeys/assert/begin for this decision and note: it is on record then',
  ),
});

const Approval = Word.extend({ standing: StandingAsked.optional() });

/** POST /owner/approvals/{id}/correct: the call stays pending, and an approval then applies to the corrected request. */
export const correctApproval = route({
  method: 'POST',
  path: '/owner/approvals/{id}/correct',
  auth: 'owner',
  role: 'approver',
  capability: 'owner.approvals.correct',
  summary: 'Corrects the endpoint or the body of a held call before it is decided.',
  body: z.strictObject({
    endpoint: text(8192).min(1).optional().describe('with its query; left out, it stays'),
    data: ObjectBody.optional().describe('the whole body; left out, it stays'),
    request_hash: RequestHash.describe('of the request that was shown: another one is not corrected'),
  }),
  nulAllowedIn: ['data'],
  answers: {
    200: {
      description: 'The held call, which waits as before. Its request_hash is that of the corrected request.',
      schema: HeldCallSummary,
    },
  },
  errors: [
    'invalid_request',
    'invalid_endpoint',
    'invalid_headers',
    'not_found',
    'conflict',
    'already_decided',
    'request_changed',
    'approval_expired',
    'audit_unavailable',
  ],
  handle: async (context) => {
    const { services, who, params, body } = context;
    const { endpoint, data, request_hash: requestHash } = body;
    const correcting = { endpoint, data: data as JsonObject | undefined, requestHash };
    const held = await correctHeld(services, changingOwner(context), storedUuid(params.id), correcting);
    const nameOf = await platformNames(services.broker.store.db, who.organisationId, [held.platform_id]);
    return json(200, await summary(services, held, nameOf));
  },
});

const DECISIONS = [
  { verb: 'approve', status: 'approved', summary: 'Approves a held call, which is then made at most once.' },
  { verb: 'deny', status: 'denied', summary: 'Denies a held call, which is then never made.' },
] as const;

/** POST /owner/approvals/deny: for an inbox that one agent has filled. */
export const denyApprovals = route({
  method: 'POST',
  path: '/owner/approvals/deny',
  auth: 'owner',
  role: 'approver',
  capability: 'owner.approvals.deny_all',
  summary: `Denies the pending calls of an agent, oldest first, ${MAX_DENIED} at most.`,
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
    const { note, ...filter } = context.body;
    return json(200, await denyWaiting(context.services, changingOwner(context), filter, note));
  },
});

/** POST /owner/approvals/{id}/approve and /deny. The replay does not depend on whether the client waits for this answer. */
export const decideApprovals = DECISIONS.map(({ verb, status, summary: what }) =>
  route({
    method: 'POST',
    path: `/owner/approvals/{id}/${verb}`,
    auth: 'owner',
    role: 'approver',
    capability: `owner.approvals.${verb}`,
    summary: what,
    // A denial accepts only the members of Word, which is strict.
    body: (verb === 'approve' ? Approval : Word) as typeof Approval,
    bodyOptional: true,
    answers: {
      200: {
        description: 'The held call as it is now; executed_at is null while the platform has not answered.',
        schema: HeldCallDecided,
      },
    },
    errors: [
      'invalid_request',
      'verification_failed',
      'counter_regression',
      'not_found',
      'already_decided',
      'request_changed',
      'approval_expired',
      'challenge_expired',
      'audit_unavailable',
    ],
    handle: async (context) => {
      const { services, who, params, body, correlationId } = context;
      const id = storedUuid(params.id);
      const { note, request_hash: requestHash, assertion } = body;
      const standing = body.standing && askedStanding(body.standing);
      if (assertion) {
        const by = { purpose: verb, note, standing, session: { owner: who.owner, approvalId: id, requestHash } };
        return json(
          200,
          await afterDeciding(services, await decideByPasskey(services, assertion, by, { correlationId })),
        );
      }
      const place = { organisationId: who.organisationId, approvalId: id, byPasskey: false };
      const prepared = standing && (await prepareStanding(services, place, standing));
      if (prepared?.kind === 'not_found') throw unknownHeldCall();
      if (prepared && prepared.kind !== 'ready') throw standingRefused(prepared);
      const decision = {
        status,
        ...(prepared && { standing: prepared.ready }),
        how: howOf(context),
        ...(note !== undefined && { note }),
        ...(requestHash !== undefined && { requestHash }),
      } as const;
      const ids = { correlationId, session: who.session.marks };
      return json(200, await afterDeciding(services, await decideHeld(services, who.owner, id, decision, ids)));
    },
  }),
);
