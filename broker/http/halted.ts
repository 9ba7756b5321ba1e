import type { AgentHalt, DenyReason } from '../policy/facts.ts';
import { reportHint } from './envelope.ts';
import { json, type Reply } from './reply.ts';
import type { Context } from './route.ts';

const REASON: Record<AgentHalt['state'], DenyReason> = {
  suspended: 'agent_suspended',
  revoked: 'agent_revoked',
  breaker_open: 'circuit_breaker_open',
};

/** The ActionDenied body of an agent that is halted as a whole (specification, ActionDenied). */
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
