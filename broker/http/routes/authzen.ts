import { z } from 'zod';
import { askedPlatform } from '../../policy/asked-platform.ts';
import { type Asker, type Decision, evaluate, subjectReader } from '../../queries/authzen.ts';
import { evaluateAll } from '../../queries/authzen-batch.ts';
import { Evaluation, Evaluations, SEMANTICS } from '../../queries/authzen-request.ts';
import type { Services } from '../../services.ts';
import { firstProblem } from '../../wire/validation.ts';
import { bearerChallenge } from '../bearer-challenge.ts';
import { Refusal } from '../errors.ts';
import type { Limit } from '../rate-limits.ts';
import { json } from '../reply.ts';
import { type Route, route } from '../route.ts';
import { agentKey, takeLimit } from '../route-steps.ts';

/** Shared by all of these routes. */
const LIMIT: Limit = { name: 'authzen', perMinute: 1_200, per: 'agent' };
const MAX_BODY = 256 * 1024;

const NOT_YOURS =
  'Your token may not ask about this agent: an agent asks about itself, an owner about the organisation’s.';

const said = {
  reason: z
    .string()
    .describe('`approved`, the reason why a call would be held or refused, `revoked`, or `denied` for anything else'),
  require_approval: z.literal(true).optional().describe('present when a call would be held for a person'),
};
const Answer = z
  .object({
    decision: z.boolean(),
    ...said,
    context: z.object({
      ...said,
      conditional: z.literal(true).optional().describe('a rule depends on the call, and may still hold or refuse it'),
      error: z
        .object({ status: z.int(), message: z.string() })
        .optional()
        .describe('of one evaluation in a batch: why it could not be made'),
    }),
  })
  .meta({ id: 'AuthzenDecision' });
const Answers = z.object({ evaluations: z.array(Answer) });

/** Returns the platform whose facts are loaded with the authentication; for a list it is the default resource beside the items. */
const platformIn = ({ resource }: { resource?: unknown }): unknown => (resource as { id?: unknown } | undefined)?.id;

/** Declares a single evaluation at a path: the specification's, or the standard's. */
const single = (path: string, capability: string): Route =>
  route({
    method: 'POST',
    path,
    auth: 'agent_or_owner',
    role: 'viewer',
    limit: LIMIT,
    dialect: 'problem',
    platformIn,
    maxBodyBytes: MAX_BODY,
    capability,
    summary: 'Whether an agent may use a scope of a platform now (AuthZEN).',
    body: Evaluation.extend({
      evaluations: z.array(z.unknown()).max(0, 'many questions go to /access/v1/evaluations').optional(),
    }),
    answers: { 200: { description: 'The decision; a refusal, too.', schema: Answer } },
    errors: ['not_your_agent', 'store_restored'],
    handle: async ({ services, who, body }) => json(200, await decided(services, who, body)),
  });

async function decided(services: Services, who: Asker, asked: Evaluation): Promise<Decision> {
  const read = subjectReader(services, who, askedPlatform(platformIn(asked)));
  const decision = await evaluate(services, read, asked, services.broker.clock());
  if (!decision) throw new Refusal('not_your_agent', NOT_YOURS, { headers: bearerChallenge() });
  return decision;
}

/** POST /v1/authzen/access (specification, Permissions and authorization queries). */
export const authzenAccess = single('/v1/authzen/access', 'authzen.access');
/** The same evaluation at the standard's default path, for enforcement points that read no metadata. */
export const authzenEvaluation = single('/access/v1/evaluation', 'authzen.evaluation');

/** POST /access/v1/evaluations (OpenID AuthZEN Authorization API 1.0, Access Evaluations API). */
export const authzenEvaluations = route({
  method: 'POST',
  path: '/access/v1/evaluations',
  auth: 'agent_or_owner',
  role: 'viewer',
  limit: LIMIT,
  dialect: 'problem',
  platformIn,
  maxBodyBytes: MAX_BODY,
  capability: 'authzen.evaluations',
  summary: 'Several such evaluations in one request (AuthZEN).',
  body: Evaluations,
  answers: {
    200: {
      description: `The decisions in their order, as far as \`evaluations_semantic\` goes (${SEMANTICS.join(', ')}); one decision when there was no list.`,
      schema: z.union([Answers, Answer]),
    },
  },
  errors: ['not_your_agent', 'store_restored'],
  handle: async ({ services, limits, who, body }) => {
    // Without items it is a single evaluation, and was validated as one.
    if (!body.evaluations?.length) return json(200, await decided(services, who, body as Evaluation));
    // The first item was counted with the request.
    const more = body.evaluations.length - 1;
    const limited =
      more > 0 && who.kind === 'agent' ? await takeLimit(limits, LIMIT, agentKey(LIMIT, who.agent), more) : undefined;
    const refusals = { notYours: NOT_YOURS, malformed: firstProblem };
    const read = subjectReader(services, who, askedPlatform(platformIn(body)));
    const now = services.broker.clock();
    const evaluations = await evaluateAll(services, read, body, now, refusals);
    return json(200, { evaluations }, limited?.headers);
  },
});

/** GET /.well-known/authzen-configuration (OpenID AuthZEN Authorization API 1.0, Policy Decision Point Metadata). */
export const authzenConfiguration = route({
  method: 'GET',
  path: '/.well-known/authzen-configuration',
  auth: 'none',
  anyOrigin: true,
  capability: 'authzen.configuration',
  summary: 'Where AuthZEN is answered.',
  answers: {
    200: {
      description: 'The metadata of the policy decision point.',
      schema: z
        .object({
          policy_decision_point: z.url(),
          access_evaluation_endpoint: z.url(),
          access_evaluations_endpoint: z.url(),
        })
        .meta({ id: 'AuthzenConfiguration' }),
      headers: ['Cache-Control'],
    },
  },
  errors: [],
  handle: async ({ services: { broker } }) =>
    json(
      200,
      {
        policy_decision_point: broker.baseUrl,
        access_evaluation_endpoint: broker.baseUrl + authzenAccess.path,
        access_evaluations_endpoint: broker.baseUrl + authzenEvaluations.path,
      },
      { 'Cache-Control': 'public, max-age=3600' },
    ),
});
