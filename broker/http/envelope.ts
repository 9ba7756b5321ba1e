/** The two shapes of the agent API: `{data, _meta}` and the error envelope. */
import type { Services } from '../services.ts';
import type { Refusal } from './errors.ts';
import type { Reply } from './reply.ts';
import type { Context } from './route.ts';

export type NextAction = { capability: string; endpoint: string };

/**
 * Builds `_meta` of the specification, with the newest checkpoint of the organisation's receipt log: everybody who keeps answers becomes a witness of
 * the log. `extra`: further members of this answer, such as `audit_id`.
 */
export function meta(
  services: Services,
  organisationId: string,
  capability: string,
  extra: Record<string, unknown> = {},
  nextActions: readonly NextAction[] = [],
): Record<string, unknown> {
  const log = services.logHeads.of(organisationId);
  return {
    capability,
    timestamp: new Date(services.broker.clock()).toISOString(),
    next_actions: nextActions,
    docs: `${services.broker.baseUrl}/docs#${capability}`,
    ...extra,
    ...(log && { log }),
  };
}

/** Builds `{data, _meta}` from `data` that is JSON text already, so that numbers of an upstream keep their digits. */
export function envelope(status: number, dataJson: string | Buffer, metaValue: Record<string, unknown>): Reply {
  const end = `,"_meta":${JSON.stringify(metaValue)}}`;
  if (typeof dataJson !== 'string')
    return { status, body: Buffer.concat([Buffer.from('{"data":'), dataJson, Buffer.from(end)]) };
  return { status, body: `{"data":${dataJson}${end}` };
}

/** Builds the error envelope, with a ready diagnostics payload for an authenticated agent. */
export function errorReply(
  refusal: Refusal,
  context: Pick<Context, 'correlationId' | 'services'>,
  hint?: ReportHint,
): Reply {
  return {
    status: refusal.status,
    headers: refusal.headers,
    refusal,
    body: JSON.stringify({
      error: refusal.code,
      detail: refusal.message,
      correlation_id: context.correlationId,
      ...refusal.extra,
      ...(hint && { report_hint: reportHint(hint, context) }),
    }),
  };
}

type ReportHint = { code: string; severity: 'warning' | 'error'; endpoint: string };

/** Builds a payload that the agent may post unchanged when it believes that the refusal is a mistake. */
export function reportHint(hint: ReportHint, context: Pick<Context, 'correlationId' | 'services'>) {
  return {
    url: `${context.services.broker.baseUrl}/v1/agents/self/diagnostics`,
    suggested_payload: {
      message: `Unexpected ${hint.code} from ${hint.endpoint}`,
      severity: hint.severity,
      code: hint.code,
      endpoint: hint.endpoint,
      correlation_id: context.correlationId,
    },
  };
}
