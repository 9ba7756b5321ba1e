import { agentFacts, breakersOf } from '../facts/facts.ts';
import type { AgentHalt, DenyReason } from '../policy/facts.ts';
import { haltOf } from '../policy/halt.ts';
import { reportHint } from './envelope.ts';
import { Refusal } from './errors.ts';
import { json, type Reply } from './reply.ts';
import type { Context } from './route.ts';

const REASON: Record<AgentHalt['state'], DenyReason> = {
  suspended: 'agent_suspended',
  revoked: 'agent_revoked',
  breaker_open: 'circuit_breaker_open',
};

/** Builds the ActionDenied body of an agent that is halted as a whole (specification, ActionDenied). */
export function haltedReply(
  halt: AgentHalt,
  context: Pick<Context, 'services' | 'correlationId'>,
  path: string,
): Reply {
  const reason = REASON[halt.state];
  return {
    ...json(403, {
      error: 'agent_halted',
      reason,
      detail: halt.instructions,
      correlation_id: context.correlationId,
      halt,
      report_hint: reportHint({ code: reason, severity: 'warning', endpoint: path }, context),
    }),
    ...(halt.retry_after_seconds !== null && { headers: { 'Retry-After': String(halt.retry_after_seconds) } }),
  };
}

/**
 * Refuses an agent that is halted or not set up yet, before its body is read. Undefined when it may continue. Throws Refusal for an agent that has no
 * key yet.
 */
export function stoppedReply(
  context: Pick<Context<'agent'>, 'who' | 'services' | 'correlationId'>,
  path: string,
): Reply | undefined {
  const { agent } = context.who;
  const now = context.services.broker.clock();
  const halt = haltOf(agentFacts(agent), breakersOf(agent, now), now);
  if (halt) return haltedReply(halt, context, path);
  if (agent.status !== 'active')
    throw new Refusal(
      'agent_inactive',
      `The agent is ${agent.status}: it may ask once it has collected, or bound, its key.`,
    );
  return undefined;
}
