/** The data of the approval page, for everybody with its link: see docs/security.md for the consequences. */
import { z } from 'zod';
import { connectionNote } from '../../approvals/connection-note.ts';
import { sentenceOfHeld } from '../../approvals/held-sentence.ts';
import { passkeysFor } from '../../approvals/passkeys/approval.ts';
import { askedOf, findHeldById, openHeld } from '../../approvals/read-held.ts';
import { statusAt } from '../../audit/approval-state.ts';
import { storedUuid } from '../../crypto/ids.ts';
import { platformNames } from '../../facts/platform-names.ts';
import { PasskeyDeciders, passkeyDecidersIn } from '../../policy/passkey-deciders.ts';
import { Refusal } from '../errors.ts';
import { agentNamed, approversOf, heldBecause, secondsLeft } from '../held-call.ts';
import { HeldCallOpened, HeldCallStated } from '../held-call-schema.ts';
import { instant, json } from '../reply.ts';
import { route } from '../route.ts';
import { takeLimit } from '../route-steps.ts';
import { shownSentence } from '../sentence.ts';

/**
 * Counts successful requests, beside the limit of failures: an agent knows the ids of its own calls, and opening a request of 1 MiB blocks other
 * requests for 50 ms. Counted per address and agent family: it allows 25 open pages, and cannot be used to keep an owner from another agent's calls.
 */
const READ_LIMIT = { name: 'approve-looks', perMinute: 300, per: 'address' } as const;
/** Number of opened bytes that count as one further request. */
const REQUEST_BYTES = 64 * 1024;

/** The address of the page is a capability, so browsers must not send it along when a link is followed. */
const HEADERS = { 'Referrer-Policy': 'no-referrer' };

const opened = HeldCallOpened.shape;

const Waiting = z
  .object({
    status: z.literal('pending'),
    expires_at: opened.expires_at,
    expires_in_seconds: opened.expires_in_seconds,
    agent: opened.agent.pick({ name: true, agent_id: true, parent: true, suspended: true, ended: true }),
    sentence: opened.sentence,
    platform: opened.platform,
    platform_name: opened.platform_name,
    platform_suspended: opened.platform_suspended,
    connection: z.string().nullable().describe('its label'),
    connection_note: opened.connection_note,
    scope: opened.scope,
    reason: opened.reason,
    held_because: opened.held_because,
    approvers: opened.approvers,
    request_hash: opened.request_hash,
    passkeys: z.boolean().describe('whether it can be approved by passkey'),
    passkey_deciders: PasskeyDeciders.exclude(['default']).describe('who decides by passkey without a session'),
    request: opened.request.optional().describe('left out when it is the one that is known'),
    asked: opened.asked,
  })
  .meta({ id: 'WaitingCall' });

const Became = HeldCallStated.pick({
  expires_at: true,
  decided_at: true,
  executed_at: true,
  execution_error: true,
  result_summary: true,
})
  .extend({ status: HeldCallStated.shape.status.exclude(['pending']) })
  .meta({ id: 'DecidedCall' });

/**
 * GET /approve/{id}/request. While the call is pending: the exact request, and what is needed to decide. Afterwards only the result, so that an old
 * link reveals nothing more. Never includes what the broker injects.
 */
export const approveRequest = route({
  method: 'GET',
  path: '/approve/{id}/request',
  auth: 'none',
  limit: { name: 'approve-page', perMinute: 60, per: 'address', counts: 'failures' },
  capability: 'approvals.page',
  summary: 'A held call as the approval page shows it; the approval id is the capability.',
  query: z.object({
    known: z.string().optional().describe('the request_hash that you have: its request is then not sent again'),
  }),
  answers: {
    200: {
      description: 'The held call, or its outcome once it was decided or has expired.',
      schema: z.union([Waiting, Became]),
    },
  },
  errors: ['invalid_request', 'not_found', 'rate_limited'],
  handle: async ({ services, params, query, limits, source }) => {
    const { broker } = services;
    const held = await findHeldById(broker.store.db, storedUuid(params.id));
    if (!held) throw new Refusal('not_found', 'There is no such held call.', { headers: HEADERS });
    const now = broker.clock();
    const waits = statusAt(held, now) === 'pending';
    const opens = waits && query.known !== held.request_hash;
    const family = held.parent_public_id ?? held.agent_public_id;
    const cost = 1 + (opens ? Math.floor(held.action.length / REQUEST_BYTES) : 0);
    await takeLimit(limits, READ_LIMIT, `${source} ${family}`, cost);
    if (!waits) return json(200, outcomeOf(held, now), HEADERS);
    const nameOf = await platformNames(broker.store.db, held.organisation_id, [held.platform_id]);
    const { canSign, deciders } = await passkeysFor(broker, held.id);
    return json(
      200,
      {
        status: 'pending',
        expires_at: instant(held.expires_at),
        expires_in_seconds: secondsLeft(held, now),
        agent: agentNamed(held),
        sentence: shownSentence(sentenceOfHeld(broker, held)),
        platform: held.platform_id,
        platform_name: nameOf(held.platform_id),
        platform_suspended: held.platform_suspended === 1,
        connection: held.connection_label,
        connection_note: await connectionNote(services, held),
        scope: held.scope,
        reason: held.agent_reason,
        held_because: await heldBecause(services, held),
        approvers: await approversOf(broker, held),
        request_hash: held.request_hash,
        passkeys: canSign,
        passkey_deciders: passkeyDecidersIn(deciders, services.provider !== undefined),
        asked: askedOf(services, held),
        ...(opens && { request: await openHeld(services, held) }),
      },
      HEADERS,
    );
  },
});

const outcomeOf = (held: Parameters<typeof openHeld>[1], now: number) => ({
  status: statusAt(held, now),
  expires_at: instant(held.expires_at),
  decided_at: instant(held.decided_at),
  executed_at: instant(held.executed_at),
  execution_error: held.execution_error,
  result_summary: held.result_summary,
});
