/** Shows what applying a governance file would change or has changed. */
import { z } from 'zod';
import { audienceOfAgent } from '../auth/authenticate-workload.ts';
import type { Principal } from '../auth/principal.ts';
import { nameAsWord } from '../config-file/name.ts';
import { formatProblem } from '../config-file/problems.ts';
import type { ApplyResult } from '../config-plan/apply.ts';
import { CHANGE_KINDS } from '../config-plan/planning.ts';

export const ChangeShown = z
  .object({
    action: z.enum(['create', 'update', 'delete']),
    kind: z.enum(CHANGE_KINDS),
    name: z.string(),
    details: z.array(z.string()).describe('lines such as "role: viewer → admin"; never a secret'),
  })
  .meta({ id: 'GovernanceChange' });
const Planned = z
  .object({ changes: z.array(ChangeShown), warnings: z.array(z.string()) })
  .meta({ id: 'GovernancePlan' });
export const PlannedShown = Planned.extend({
  governance_version: z
    .string()
    .describe('of what is in force now: given to apply, that changes nothing when something else is in force by then'),
  needs_values: z
    .array(z.string())
    .describe(
      'with `keep_secrets`, what the file names, was not given and is not stored: apply takes the values of these',
    ),
}).meta({ id: 'GovernancePlanShown' });
export const AppliedShown = Planned.extend({
  bootstrap_tokens: z
    .array(z.object({ agent: z.string(), agent_id: z.string(), token: z.string(), expires_at: z.iso.datetime() }))
    .describe('with which new agents bring their keys; shown once, and to a pipeline never'),
  workloads: z
    .array(z.object({ agent: z.string(), agent_id: z.string(), audience: z.url() }))
    .describe('of agents that have one: the only value of `aud` that its tokens may have'),
}).meta({ id: 'GovernanceApplied' });

const keyless = (agent: string): string =>
  `agents.${agent}: has no key yet. An owner makes the token with which it brings one: agent-broker agent bootstrap ${nameAsWord(agent)}. A pipeline is not given it.`;

/** Bootstrap tokens are shown to owners only: whoever has one can become the agent, and a pipeline's job log has many readers. */
export function appliedShown(
  baseUrl: string,
  who: Principal['kind'],
  { plan, bootstrapTokens, trusting }: Extract<ApplyResult, { ok: true }>,
): z.output<typeof AppliedShown> {
  const [shown, unseen] = who === 'pipeline' ? [[], bootstrapTokens] : [bootstrapTokens, []];
  return {
    changes: plan.changes,
    warnings: [...plan.warnings.map(formatProblem), ...unseen.map(({ agent }) => keyless(agent))],
    bootstrap_tokens: shown.map(({ agent, agentId, token, expiresAt }) => ({
      agent,
      agent_id: agentId,
      token: token.reveal(),
      expires_at: new Date(expiresAt).toISOString(),
    })),
    workloads: trusting.map(({ agent, agentId }) => ({
      agent,
      agent_id: agentId,
      audience: audienceOfAgent(baseUrl, agentId),
    })),
  };
}
