/** Selects the error form for refusals of `/proxy` before the connection is known: of the token, or of too many requests. */
import type { IncomingMessage } from 'node:http';
import type { Principal } from '../../auth/principal.ts';
import { BUILTIN_PLATFORMS } from '../../platforms/builtin.ts';
import { parseOperation } from '../../policy/operation.ts';
import { readRawTarget } from '../../proxy/raw-target.ts';
import type { Services } from '../../services.ts';
import { PROBLEM_TYPE } from '../problem.ts';
import type { Reply } from '../reply.ts';
import { connectionNamed } from './lookup.ts';
import { type AskedFor, refusedReply, type Shape } from './refusal.ts';

/**
 * Returns the error form of a built-in platform, by the default label of its connection. Nothing is looked up in the store, so the answer does not
 * reveal whether there is such a connection.
 */
function shapeByLabel(label: string): Shape | undefined {
  const builtin = Object.hasOwn(BUILTIN_PLATFORMS, label)
    ? BUILTIN_PLATFORMS[label as keyof typeof BUILTIN_PLATFORMS]
    : undefined;
  if (builtin?.error_body === undefined) return undefined;
  const { error_body, failed_if, error_status = {} } = builtin;
  const errorStatus = Object.entries(error_status).map(([text, status]) => ({
    operation: parseOperation(text),
    status,
  }));
  return { manifest: { error_body, failed_if }, rules: { errorStatus } };
}

/** Returns what a request asks for, as far as its address shows. */
export function askedByLabel({ url = '', method = '' }: IncomingMessage): AskedFor | undefined {
  const target = readRawTarget(url);
  return target && { platform: shapeByLabel(target.connection), method, endpoint: target.endpoint };
}

/** Formats a refusal that came before the handler. An authenticated agent gets the form of its own connection. */
export async function formatEarlyRefusal(
  request: IncomingMessage,
  reply: Reply,
  { services, who, correlationId }: { services: Services; who: Principal | undefined; correlationId: string },
): Promise<Reply> {
  const byLabel = askedByLabel(request);
  const { refusal } = reply;
  if (reply.type !== PROBLEM_TYPE || refusal === undefined || byLabel === undefined) return reply;
  const asked =
    who?.kind === 'agent'
      ? { ...byLabel, platform: await shapeFor(request, services, who, byLabel.platform) }
      : byLabel;
  const { status, message: detail, code } = refusal;
  const retry = status === 429 || status === 503;
  return refusedReply({ status, code, detail, headers: reply.headers, retry }, { correlationId }, asked);
}

async function shapeFor(
  { url = '' }: IncomingMessage,
  services: Services,
  who: Extract<Principal, { kind: 'agent' }>,
  otherwise: Shape | undefined,
): Promise<Shape | undefined> {
  const platform = connectionNamed(who.rows, readRawTarget(url)?.connection ?? '')?.platform_id;
  if (platform == null) return otherwise;
  try {
    return (await services.loadFacts(who.rows, services.broker.clock())).platform ?? otherwise;
  } catch {
    // The refusal itself may be due to the store being unavailable.
    return otherwise;
  }
}
