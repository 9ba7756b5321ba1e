import { z } from 'zod';
import { simulateRecorded } from '../../../admin/policies/simulate-recorded.ts';
import type { Change } from '../../../calls/judge-recorded.ts';
import { Guardrails, PolicyName, PolicyRules } from '../../../config-file/schema.ts';
import { METHODS } from '../../../policy/facts.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';
import { listRuleProblems, Warnings } from '../../rule-schemas.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

const Proposal = z
  .strictObject({
    policy: z.union([z.guid(), PolicyName]).optional().describe('id or name of the policy whose rules are proposed'),
    policy_rules: PolicyRules.optional(),
    guardrails: Guardrails.optional(),
    days: z.int().min(1).max(30).default(7).describe('how far back'),
  })
  .refine(({ policy, policy_rules }) => (policy === undefined) === (policy_rules === undefined), {
    error: 'policy and policy_rules belong together',
    path: ['policy'],
  })
  .refine(({ policy_rules, guardrails }) => policy_rules !== undefined || guardrails !== undefined, {
    error: 'give policy_rules, guardrails or both: there is nothing to try',
    path: ['policy'],
  });

const Effect = z.enum(['allow', 'require_approval', 'deny', 'cannot_tell']);
const Rule = z.object({ source: z.enum(['policy', 'guardrail']), name: z.string() }).nullable();

const Tried = z
  .object({
    since: z.iso.datetime().describe('calls since then were simulated; later than requested if there were too many'),
    complete: z.boolean().describe('whether all calls of the requested days were simulated'),
    calls: z.int(),
    same: z.int(),
    changed: z.int(),
    cannot_tell: z.int().describe('calls of which a rule reads what no record holds: query, headers, body and others'),
    changes: z.array(
      z.object({
        before: Effect.describe('by the rules in force'),
        after: Effect.describe('by the proposed ones'),
        calls: z.int(),
        examples: z
          .array(
            z.object({
              audit_id: z.guid(),
              created_at: z.iso.datetime(),
              agent_id: z.string(),
              agent_name: z.string(),
              platform: z.string(),
              scope: z.string(),
              method: z.enum(METHODS),
              path: z.string(),
              result: z.string().nullable().describe('what became of it'),
              rule_before: Rule,
              rule_after: Rule,
            }),
          )
          .describe('the newest of them'),
      }),
    ),
    warnings: Warnings,
  })
  .meta({ id: 'RecordedSimulation' });

/** POST /owner/simulate/recorded */
export const ownerSimulateRecorded = route({
  method: 'POST',
  path: '/owner/simulate/recorded',
  auth: 'owner',
  role: 'viewer',
  // Each simulation reads up to 20,000 rows.
  limit: { name: 'recorded simulations', perMinute: 10, per: 'address' },
  capability: 'owner.simulate.recorded',
  summary: 'What proposed rules would have decided for the calls of the last days; nothing is written or sent.',
  body: Proposal,
  onMalformed: listRuleProblems(Proposal),
  answers: { 200: { description: 'How many calls change, and some of them.', schema: Tried } },
  errors: ['invalid_request', 'invalid_governance', 'not_found', 'rate_limited'],
  handle: async ({ services, who: { organisationId }, body }) => {
    const since = services.broker.clock() - body.days * DAY_MS;
    const { policy, policy_rules: policyRules, guardrails } = body;
    const tried = await simulateRecorded(services, organisationId, { policy, policyRules, guardrails, since });
    return json(200, {
      since: time(tried.reachedOnly ?? since),
      complete: tried.reachedOnly === null,
      calls: tried.calls,
      same: tried.same,
      changed: tried.changed,
      cannot_tell: tried.cannotTell,
      changes: tried.changes.map(shown),
      warnings: tried.warnings,
    });
  },
});

const time = (instant: number): string => new Date(instant).toISOString();

const shown = ({ before, after, calls, examples }: Change) => ({
  before,
  after,
  calls,
  examples: examples.map(({ row, agentName, ...judged }) => ({
    audit_id: row.id,
    created_at: time(row.created_at),
    agent_id: row.agent_public_id,
    agent_name: agentName,
    platform: row.platform_id,
    scope: row.scope,
    method: row.method,
    path: row.path,
    result: row.result,
    rule_before: judged.before.rule,
    rule_after: judged.after.rule,
  })),
});
