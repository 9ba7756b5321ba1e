import { z } from 'zod';
import { simulateCall } from '../../../admin/policies/simulate.ts';
import { Guardrails, PolicyRules } from '../../../config-file/schema.ts';
import { CONCRETE_CHECKS, DENY_REASONS, EFFECTS, REF_CHANGES, STANDING_CHECKS } from '../../../policy/facts.ts';
import type { Mask } from '../../../policy/masks/mask.ts';
import { VALUE_KINDS } from '../../../policy/value-kinds.ts';
import { Action, text } from '../../../wire/action.ts';
import { AgentId } from '../../owned/agent.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';
import { listRuleProblems, Warnings } from '../../rule-schemas.ts';

const Question = Action.pick({
  platform: true,
  method: true,
  endpoint: true,
  data: true,
  encoding: true,
  headers: true,
  connection_id: true,
}).extend({
  agent_id: AgentId.max(64),
  scope: Action.shape.scope
    .optional()
    .describe('the scope that the call names; absent: the granted one that covers the call, as on /proxy'),
  git: z
    .strictObject({
      refs: z
        .array(z.strictObject({ name: text(1024), action: z.enum(REF_CHANGES) }))
        .max(1000)
        .describe('what it changes, by full names such as `refs/heads/main`; empty for the probe before a long push'),
    })
    .optional()
    .describe('of a push by git, to which it belongs (`POST /git/<owner>/<repo>/git-receive-pack`)'),
  policy_rules: PolicyRules.optional().describe("instead of the rules of the agent's policy"),
  guardrails: Guardrails.optional().describe('instead of the guardrails in force'),
});

const Check = z.enum([...STANDING_CHECKS, ...CONCRETE_CHECKS]);
const HOLD_REASONS = [
  'approval_required_by_policy',
  'approval_required_by_guardrail',
  'approval_required_by_grant',
] as const;

const Simulation = z
  .object({
    decision: z.enum(['allow', 'require_approval', 'deny']),
    reason: z.enum(['approved', ...HOLD_REASONS, ...DENY_REASONS]),
    detail: z.string(),
    scope: z.string().nullable().describe('the scope of the call; null: none was named, and none can be inferred'),
    matched: z.array(
      z.object({
        source: z.enum(['policy', 'guardrail']),
        name: z.string(),
        effect: z.enum([...EFFECTS, 'suspend']),
        error: z.string().optional().describe('why its condition could not be evaluated'),
        after: z.guid().optional().describe('audit id of the earlier call because of which it applies'),
      }),
    ),
    evaluated: z.array(Check).describe('the checks that were made, in their order'),
    not_evaluated: z.array(Check).describe('the remaining checks, which did not affect the result'),
    violating: z
      .array(z.string())
      .optional()
      .describe('recipients, repositories or refs that the grant does not allow'),
    mask: z
      .object({ members: z.array(z.string()), values: z.array(z.enum(VALUE_KINDS)), rules: z.array(z.string()) })
      .optional()
      .describe('what would be masked in its answer, and the rules that mask it'),
    prevented: z
      .object({ error: z.enum(['store_restored', 'platform_not_connected', 'needs_consent']), detail: z.string() })
      .optional()
      .describe('why the call would not be made now, whatever the decision: its error, and what an owner can do'),
    suspends: z.string().optional().describe('the guardrail that would suspend the agent'),
    policy: z
      .object({ id: z.guid().nullable(), name: z.string(), version: z.int().nullable() })
      .nullable()
      .describe('version null: the proposed rules'),
    guardrails: z.object({ version: z.int().nullable() }).describe('version null: the proposed ones'),
    warnings: Warnings,
  })
  .meta({ id: 'Simulation' });

const maskShown = ({ members, values, rules }: Mask) => ({ members, values, rules });

const DECISIONS = { allow: 'allow', hold: 'require_approval', deny: 'deny' } as const;

/** POST /owner/simulate */
export const ownerSimulate = route({
  method: 'POST',
  path: '/owner/simulate',
  auth: 'owner',
  role: 'viewer',
  // A viewer can have 500 conditions compiled with each request.
  limit: { name: 'simulations', perMinute: 120, per: 'address' },
  capability: 'owner.simulate',
  summary: 'How a call would be decided, by the rules in force or by proposed ones; nothing is written or sent.',
  body: Question,
  onMalformed: listRuleProblems(Question),
  nulAllowedIn: ['data'],
  answers: { 200: { description: 'The decision.', schema: Simulation } },
  errors: ['invalid_request', 'invalid_governance', 'invalid_endpoint', 'invalid_headers', 'not_found', 'rate_limited'],
  handle: async ({ services, who: { organisationId }, body }) => {
    const { agent_id: agentId, policy_rules: policyRules, guardrails, git, ...action } = body;
    const question = { agentId, action, refs: git?.refs, policyRules, guardrails };
    const { verdict, ...simulated } = await simulateCall(services, organisationId, question);
    const { violating, suspend } = verdict.kind === 'deny' ? verdict : {};
    return json(200, {
      decision: DECISIONS[verdict.kind],
      reason: verdict.reason,
      detail: verdict.detail,
      scope: (action.scope ?? simulated.read?.ask.scope) || null,
      matched: verdict.matched,
      evaluated: verdict.evaluated,
      not_evaluated: verdict.notEvaluated,
      ...(violating && { violating }),
      ...(verdict.mask && { mask: maskShown(verdict.mask) }),
      ...(simulated.prevented && { prevented: simulated.prevented }),
      ...(suspend && { suspends: suspend.guardrail }),
      policy: simulated.policy,
      guardrails: simulated.guardrails,
      warnings: simulated.warnings,
    });
  },
});
