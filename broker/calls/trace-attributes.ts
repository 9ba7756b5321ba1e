/**
 * Span attributes of a call. Names follow OpenTelemetry's semantic conventions where one exists. Never a body, path, query, header or
 * person: the audit row that `agent_broker.audit_id` names holds those, where allowed.
 */
import type { Outcome } from '../audit/outcome.ts';
import { endOf } from '../audit/row.ts';
import type { SpanAttributes } from '../telemetry/call-watch.ts';
import type { Call } from './call.ts';

/** Attributes of the whole call. */
export function callAttributes(outcome: Outcome): SpanAttributes {
  const { call } = outcome;
  const { result, reason } = endOf(outcome);
  const { platform, scope, method } = call.asked;
  return {
    'agent_broker.audit_id': call.auditId,
    'agent_broker.correlation_id': call.correlationId,
    'agent_broker.result': result,
    'agent_broker.reason': reason,
    ...(platform !== undefined && { 'agent_broker.platform': platform }),
    ...(scope !== undefined && { 'agent_broker.scope': scope }),
    ...(method !== undefined && { 'http.request.method': method }),
    ...(call.agent.agentId !== null && { 'gen_ai.agent.id': call.agent.agentId }),
  };
}

/** Attributes of a request to a platform. */
export function requestAttributes({ action }: Pick<Call, 'action'>, baseUrl: string): SpanAttributes {
  const url = new URL(baseUrl);
  return {
    'http.request.method': action.method,
    'server.address': url.hostname,
    'server.port': Number(url.port || (url.protocol === 'https:' ? 443 : 80)),
  };
}

/** Attributes of the answer to a request to a platform. */
export function answerAttributes(outcome: Outcome): SpanAttributes {
  return 'upstreamStatus' in outcome ? { 'http.response.status_code': outcome.upstreamStatus } : {};
}
