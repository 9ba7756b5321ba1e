/** Request bodies of AuthZEN (OpenID AuthZEN Authorization API 1.0, sections 5 to 7; specification, POST /v1/authzen/access). */
import { z } from 'zod';
import { AGENT_ID_PATTERN, UUID_PATTERN } from '../crypto/ids.ts';
import { text } from '../wire/action.ts';

/** Attributes from the enforcement point. Ignored: the broker uses its own facts. */
const properties = z.record(z.string(), z.unknown()).optional().describe('accepted, and not evaluated');
const type = text(256);

const Subject = z.object({
  type: type.describe('conventionally `agent`; ignored'),
  id: z
    .string()
    .refine((id) => UUID_PATTERN.test(id) || AGENT_ID_PATTERN.test(id), "must be the agent's uuid or its id, agt_…")
    .describe("the agent's uuid or its agent id"),
  properties,
});
const AskedAction = z.object({ name: text(256).min(1).describe('the scope'), properties });
const Resource = z.object({
  type: type.describe('conventionally `platform`; ignored'),
  id: text(256).min(1).describe('the platform id'),
  properties,
});
const AskedContext = z.looseObject({
  connection_id: z
    .guid()
    .transform((id) => id.toLowerCase())
    .optional()
    .describe('which connection, as on POST /v1/actions; everything else here is ignored'),
});

/** One evaluation. Unknown members are ignored, as the standard requires. */
export const Evaluation = z
  .object({ subject: Subject, action: AskedAction, resource: Resource, context: AskedContext.optional() })
  .meta({ id: 'AuthzenEvaluation' });
export type Evaluation = z.infer<typeof Evaluation>;

export const SEMANTICS = ['execute_all', 'deny_on_first_deny', 'permit_on_first_permit'] as const;
const MAX_EVALUATIONS = 100;

const Options = z.looseObject({ evaluations_semantic: z.enum(SEMANTICS).optional() });

/**
 * A batch. The members beside `evaluations` are defaults for the items (authzen-batch.ts), and may be incomplete. Items are validated separately: an invalid
 * one gets `decision: false` and does not affect the others.
 */
export const Evaluations = z
  .object({
    subject: Subject.partial().optional(),
    action: AskedAction.partial().optional(),
    resource: Resource.partial().optional(),
    context: AskedContext.optional(),
    evaluations: z
      .array(z.unknown().describe('a question, without members that are given next to the list'))
      .max(MAX_EVALUATIONS, `at most ${MAX_EVALUATIONS} in one request`)
      .optional(),
    options: Options.optional(),
  })
  .superRefine((body, context) => {
    if (body.evaluations?.length) return;
    // Without items it is a single evaluation (Access Evaluations API, Request).
    const { error } = Evaluation.safeParse(body);
    for (const issue of error?.issues ?? []) context.addIssue({ ...issue });
  })
  .meta({ id: 'AuthzenEvaluations' });
export type Evaluations = z.infer<typeof Evaluations>;
