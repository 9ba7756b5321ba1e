/** Raw requests that are not calls: by their method, or because the agent cannot use the connection. */
import type { WholeOutcome } from '../../audit/outcome.ts';
import { perform } from '../../calls/perform.ts';
import type { CallLease } from '../../egress/call-lease.ts';
import { afterRefusal, callerOf } from '../next-step.ts';
import type { Context } from '../route.ts';
import type { FoundConnection, NoConnection } from './lookup.ts';
import { outcomeRefusal, type RawRefusal } from './refusal.ts';

const ALLOWED = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
export const isMethod = (method = ''): boolean => ALLOWED.includes(method);

/** Refuses a request for a connection that the agent cannot use. */
export async function refuseNoConnection(
  context: Context<'raw'>,
  lease: CallLease,
  missing: NoConnection,
): Promise<RawRefusal> {
  const refusal = await refuseUnsupported(context, lease, { code: 'not_found', detail: missing.missing });
  if (!missing.isGrantable || refusal.code !== 'not_found') return refusal;
  return { ...refusal, detail: `${refusal.detail} ${afterRefusal(refusal.code, callerOf(context), {})}` };
}

/** Refuses OPTIONS, TRACE and the methods of WebDAV, which no rule could judge. */
export async function refuseMethod(
  context: Context<'raw'>,
  lease: CallLease,
  { platform }: FoundConnection,
): Promise<RawRefusal> {
  const detail = `The method ${context.request.method} is not passed on. Allowed: ${ALLOWED.join(', ')}.`;
  const refusal = await refuseUnsupported(context, lease, { platform, code: 'method_not_allowed', detail });
  return { ...refusal, headers: { ...refusal.headers, Allow: ALLOWED.join(', ') } };
}

/** Records such a request like any other refused one. */
async function refuseUnsupported(
  context: Context<'raw'>,
  lease: CallLease,
  { platform, ...why }: { platform?: string; code: 'not_found' | 'method_not_allowed'; detail: string },
): Promise<RawRefusal> {
  const { services, request, correlationId, who } = context;
  const asked = { ok: false, body: { platform, method: request.method }, ...why } as const;
  let outcome: WholeOutcome | undefined;
  await perform(services, who, { asked, correlationId, lease }, (ended) => {
    outcome = ended;
    return { status: 0, body: '' };
  });
  if (outcome === undefined) throw new Error('a raw request has no Idempotency-Key of the broker’s');
  return outcomeRefusal(context, outcome);
}
