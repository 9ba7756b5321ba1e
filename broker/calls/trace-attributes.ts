/**
 * What spans say of a call. Names are of OpenTelemetry's semantic conventions where there is one. Never a body, a path, a query, a header
 * or a person: those are, as far as they may be, in the audit row that `agent_broker.audit_id` names.
 */
import type { Outcome } from '../audit/outcome.ts';
import { endOf } from '../audit/row.ts';
import type { SpanAttributes } from '../telemetry/call-watch.ts';
import type { Call } from './call.ts';

/** Of the call as a whole. */
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

/** Of a request to a platform. */
export function requestAttributes({ action }: Pick<Call, 'action'>, baseUrl: string): SpanAttributes {
  const url = new URL(baseUrl);
  return {
    'http.request.method': action.method,
    'server.address': url.hostname,
    'server.port': Number(url.port || (url.protocol === 'https:' ? 443 : 80)),
  };
}

/** How a request to a platform ended. `failure`: why that is the platform's. */
export function answerAttributes(outcome: Outcome): SpanAttributes {
  return 'upstreamStatus' in outcome ? { 'http.response.status_code': outcome.upstreamStatus } : {};
}
