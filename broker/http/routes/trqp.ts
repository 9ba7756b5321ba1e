import { z } from 'zod';
import { CONCRETE_CHECKS, type Instant, STANDING_CHECKS } from '../../policy/facts.ts';
import { authorization, recognition } from '../../queries/trqp.ts';
import { TrqpAuthorizationQuery, TrqpRecognitionQuery } from '../../queries/trqp-request.ts';
import { DateTime, parseDateTime } from '../../wire/date-time.ts';
import { bearerChallenge } from '../bearer-challenge.ts';
import { Refusal } from '../errors.ts';
import type { Limit } from '../rate-limits.ts';
import { instant, json } from '../reply.ts';
import { route } from '../route.ts';

const LIMIT: Limit = { name: 'trqp', perMinute: 1_200, per: 'agent' };
const STRANGERS: Limit = { name: 'trqp-public', perMinute: 60, per: 'address' };
const MAX_BODY = 16 * 1024;
const MAX_SKEW_MS = 60_000;

const base = {
  entity_id: z.string(),
  authority_id: z.string(),
  action: z.string(),
  resource: z.string(),
  time_requested: DateTime,
  time_evaluated: z.iso.datetime(),
};
const time_requested_ignored = z
  .literal(true)
  .optional()
  .describe('`context.time` was more than a minute from now, and only now is evaluated');

const Authorization = z
  .object({
    ...base,
    authorized: z.boolean(),
    message: z
      .string()
      .describe(
        'a fixed sentence where it is true; why not otherwise: the reason of the refused or held call, not_public, or entity_not_governed_by_authority',
      ),
    context: z
      .object({
        decision: z.enum(['allow', 'require_approval', 'deny']).optional(),
        policy_id: z.uuid().optional(),
        policy_version: z.int().optional(),
        evaluated: z.array(z.enum(STANDING_CHECKS)).optional(),
        not_evaluated: z.array(z.enum(CONCRETE_CHECKS)).optional(),
        conditional: z.literal(true).optional().describe('a rule depends on the call, and may still hold or refuse it'),
        time_requested_ignored,
      })
      .optional(),
  })
  .meta({ id: 'TrqpAuthorization' });

const Recognition = z
  .object({
    ...base,
    recognized: z.boolean(),
    message: z
      .string()
      .describe(
        'a fixed sentence where it is true; why not otherwise: agent_suspended, agent_revoked, agent_pending, parent_not_active, expired, not_public, or entity_not_governed_by_authority',
      ),
    context: z.object({ time_requested_ignored }).optional(),
  })
  .meta({ id: 'TrqpRecognition' });

const shared = {
  method: 'POST',
  auth: 'anyone',
  limit: LIMIT,
  strangers: STRANGERS,
  dialect: 'problem',
  maxBodyBytes: MAX_BODY,
  errors: ['not_your_agent', 'store_restored'],
} as const;

/** POST /v1/trqp/authorization (specification, Permissions and authorization queries). */
export const trqpAuthorization = route({
  ...shared,
  path: '/v1/trqp/authorization',
  platformIn: ({ resource }) => resource,
  capability: 'trqp.authorization',
  summary: 'Whether an authority lets an agent use a scope of a platform now (TRQP 2.0).',
  body: TrqpAuthorizationQuery,
  answers: { 200: { description: 'The answer; a refusal, too.', schema: Authorization } },
  handle: async ({ services, who, body }) => {
    const now = services.broker.clock();
    return answer(body, await authorization(services, who, body, now), now);
  },
});

/** POST /v1/trqp/recognition (specification, Permissions and authorization queries). */
export const trqpRecognition = route({
  ...shared,
  path: '/v1/trqp/recognition',
  capability: 'trqp.recognition',
  summary: 'Whether an authority vouches for an agent now (TRQP 2.0).',
  body: TrqpRecognitionQuery,
  answers: { 200: { description: 'The answer; a refusal, too.', schema: Recognition } },
  handle: async ({ services, who, body }) => {
    const now = services.broker.clock();
    return answer(body, await recognition(services, who, body, now), now);
  },
});

type TrqpResult = { message: string; context?: Record<string, unknown> };

/** Builds the answer, which repeats the query as it was sent. */
function answer({ context, ...asked }: TrqpRecognitionQuery, told: TrqpResult | undefined, now: Instant) {
  if (!told)
    throw new Refusal(
      'not_your_agent',
      'Your token may not ask about this entity: an agent asks about itself, an owner about the organisation’s agents. Without a token you get what is published.',
      { headers: bearerChallenge() },
    );
  const { context: more, ...rest } = told;
  const skewed = context?.time !== undefined && Math.abs((parseDateTime(context.time) ?? now) - now) > MAX_SKEW_MS;
  const time = instant(now);
  return json(200, {
    ...asked,
    ...rest,
    time_requested: context?.time ?? time,
    time_evaluated: time,
    ...((more || skewed) && { context: { ...more, ...(skewed && { time_requested_ignored: true }) } }),
  });
}
