/** Held raw calls: how long the client waits, and the answer that it gets (docs/unmodified.md, A call that a person has to approve). */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { AgentPrincipal } from '../../auth/principal.ts';
import { noteAnswerAgain, personEnded } from '../../calls/answer-again.ts';
import { endJoin, type HeldEnd, startJoinWindow } from '../../calls/held-raw.ts';
import type { HeldUnread, Wait, Waited } from '../../calls/wait-for-decision.ts';
import { accessEnded, isLentEnded } from '../../policy/access-ended.ts';
import { answeredHeaders } from '../../proxy/answer-headers.ts';
import type { Place } from '../../proxy/links.ts';
import { storedAnswer } from '../../proxy/stored-result.ts';
import { ERRORS } from '../errors.ts';
import { approveUrl } from '../held-call.ts';
import { afterHeldRead, callerOf } from '../next-step.ts';
import { type RateLimits, WAITING_BYTES } from '../rate-limits.ts';
import type { Context } from '../route.ts';
import { sentence } from '../unready.ts';
import { notesOf } from './headers.ts';
import type { RawRefusal } from './refusal.ts';

type Answering = Pick<Context<'raw'>, 'services' | 'who' | 'request'>;

/** Limits of concurrent waiting requests: per agent, and per held call. Further requests are answered without waiting. */
const MAX_PER_AGENT = 100;
const MAX_PER_CALL = 4;

/** How long such a request is marked as open in the store. The mark expires, because a replica that is killed leaves it behind. */
export const openFor = (waitMs: number): number => (waitMs === 0 ? 0 : waitMs + 5_000);

/**
 * Returns a wait of so many milliseconds, within the limits per agent and per held call, and of the bytes of all waiting requests. `bytes`: of the body.
 */
export const waitWithin = (limits: RateLimits, { agent }: AgentPrincipal, ms: number, bytes: number): Wait => ({
  ms,
  enter: (approvalId) => {
    const place = { key: agent.id, organisation: agent.organisation_id };
    const left: (() => void)[] = [];
    const leave = () => {
      for (const one of left) one();
    };
    for (const entered of [
      () => limits.enter('waits of an agent', { perKey: MAX_PER_AGENT }, place),
      () => limits.enter('waits for a call', { perKey: MAX_PER_CALL }, { key: approvalId }),
      () => limits.enter('bytes of waits', { overall: WAITING_BYTES }, { ...place, amount: bytes }),
    ]) {
      const one = entered();
      if (!one) {
        leave();
        return undefined;
      }
      left.push(one);
    }
    return leave;
  },
});

/**
 * Writes the platform's answer to a call that was made. All but its last part is written first: once a client has the complete answer, the next equal
 * request is a new call; before that, it is this one again.
 *
 * @returns false: only the beginning was stored, and nothing was written
 */
export async function writeMade(
  { services, who }: Answering,
  response: ServerResponse,
  {
    end: { result, auditId },
    found,
    approvalId,
  }: Pick<Waited, 'found' | 'approvalId'> & { end: Extract<HeldEnd, { kind: 'made' }> },
  {
    place,
    rewrite = (whole) => whole,
    unsent,
  }: { place: Place; rewrite?: ((whole: Buffer) => Buffer) | undefined; unsent: readonly string[] },
): Promise<boolean> {
  const stored = storedAnswer(result);
  if (stored === undefined) return false;
  await noteAnswerAgain(services, who, auditId ?? found.audit_id);
  const { status, headers, followed, maskedBy } = stored;
  const body = rewrite(stored.body);
  response.writeHead(status, {
    ...answeredHeaders(headers, place),
    ...((body.length > 0 || headers['content-length'] === undefined) && { 'Content-Length': body.length }),
    ...notesOf({ unsent, followed, maskedBy }),
    'X-Svc-Approval-Id': approvalId,
    'X-Svc-Audit-Id': auditId ?? found.audit_id,
  });
  if (body.length > 1 && !response.write(body.subarray(0, -1)) && !response.destroyed)
    await Promise.race([once(response, 'drain'), once(response, 'close')]);
  if (response.destroyed) return true;
  await endJoin(services.broker, who, approvalId);
  response.end(body.subarray(-1));
  return true;
}

/**
 * Returns the refusal that replaces the answer to a call that was made, when the agent could not make it any more; undefined when the agent may have
 * the answer.
 */
export async function accessEndedRefusal(
  { services, who }: Answering,
  { platform, connectionId }: { platform: string; connectionId: string },
  { found, approvalId, end }: Pick<Waited, 'found' | 'approvalId'> & { end: Extract<HeldEnd, { kind: 'made' }> },
): Promise<RawRefusal | undefined> {
  const now = services.broker.clock();
  const { facts } = await services.loadFacts(who.rows, now);
  const access = { platformId: platform, scope: found.scope, connectionId, through: connectionId };
  const auditId = end.auditId ?? found.audit_id;
  const ended = accessEnded(facts, access, now) ?? (await personEnded(services.broker, facts, auditId));
  if (ended === undefined) return undefined;
  const { halt } = ended;
  const reason = isLentEnded(ended.reason) ? 'no_permission_record' : ended.reason;
  return {
    status: reason === 'platform_not_connected' ? 412 : 403,
    code: halt ? 'agent_halted' : reason,
    detail: `${sentence(ended.detail)} The call was approved and made; its response is not returned, because the agent could not make the call now. Do not repeat it.`,
    headers: { 'X-Svc-Approval-Id': approvalId, 'X-Svc-Audit-Id': auditId },
    extra: { reason, approval_id: approvalId, audit_id: auditId },
    retry: false,
  };
}

/** Returns the refusal for a held call whose state could not be read. It does not claim that nothing was sent. */
export function unreadRefusal(context: Answering, { approvalId, cause }: HeldUnread): RawRefusal {
  const { broker } = context.services;
  const { method } = context.request;
  broker.storeOutage.failed(cause);
  broker.metrics.refused(ERRORS.store_unavailable, 'store_unavailable');
  const url = approveUrl(broker, approvalId);
  const isRead = method === 'GET' || method === 'HEAD';
  const next = isRead
    ? afterHeldRead(callerOf(context), approvalId)
    : 'Send the identical request again, and it gets the answer; the call is made once.';
  return {
    status: ERRORS.store_unavailable,
    code: 'store_unavailable',
    detail: `A person has to approve this call at ${url}. Whether it was approved, and how it ended, is unknown at the moment because the store is unavailable: the call may have been made. ${next}`,
    headers: { 'X-Svc-Approval-Id': approvalId, 'Retry-After': '5' },
    extra: { approval_id: approvalId, approval_url: url },
    retry: !isRead,
  };
}

/** A held call that gave its client no answer. `not_kept`: the call was made. */
type NoAnswer = Exclude<HeldEnd, { kind: 'made' }> | { kind: 'not_kept'; auditId: string | null };

/** The call was made, or may have been: for a while the same request gets the same refusal. */
const HAS_NO_ANSWER: readonly string[] = ['unknown', 'no_answer', 'not_kept'];

const FOR_TEN_MINUTES = 'For ten minutes the same request gets the same answer; after that it is a new call.';

/**
 * Returns the refusal for such a call. Statuses that clients retry by themselves are avoided: a retry would ask a person again, and hide the reason.
 */
export async function heldRefusal(
  context: Answering,
  { end, found, approvalId }: Pick<Waited, 'found' | 'approvalId'> & { end: NoAnswer },
): Promise<RawRefusal> {
  const { services, who } = context;
  if (end.kind === 'failed') await endJoin(services.broker, who, approvalId);
  else if (HAS_NO_ANSWER.includes(end.kind)) await startJoinWindow(services.broker, who, approvalId);
  const url = approveUrl(services.broker, approvalId);
  const isRead = found.method === 'GET';
  const readAgain = afterHeldRead(callerOf(context), approvalId);
  const auditId = ('auditId' in end ? end.auditId : null) ?? found.audit_id;
  const refusal = (code: keyof typeof ERRORS, detail: string, headers: Record<string, string> = {}): RawRefusal => ({
    status: ERRORS[code],
    code,
    detail,
    headers: { 'X-Svc-Approval-Id': approvalId, 'X-Svc-Audit-Id': auditId, ...headers },
    extra: { approval_id: approvalId, approval_url: url, audit_id: auditId },
  });
  switch (end.kind) {
    case 'pending': {
      const until = new Date(found.expires_at).toISOString();
      return refusal(
        'approval_pending',
        `Nothing was sent yet: a person has to approve this call at ${url}. ${isRead ? `${readAgain} It can be approved until ${until}.` : `Send the identical request again after that, until ${until}, and it gets the answer; the call is made once.`}`,
        { 'Retry-After': '30' },
      );
    }
    case 'in_progress':
      return {
        ...refusal(
          'approval_in_progress',
          `A person approved this call, and it is being made. ${isRead ? readAgain : 'Send the identical request again, and it gets the answer; the call is made once.'}`,
          { 'Retry-After': '5' },
        ),
        retry: !isRead,
      };
    case 'denied':
      return refusal(
        'approval_denied',
        `A person denied this call${end.note === null ? '' : `: ${end.note}`}. Do not repeat it.`,
      );
    case 'expired':
      return refusal(
        'approval_expired',
        'The approval expired before anybody decided, so nothing was sent. Send the request again to ask again.',
      );
    case 'unknown':
      return refusal(
        'executed_outcome_unknown',
        `The call was approved, and whether it was made is not known: ${end.error} Audit id: ${auditId}. ${FOR_TEN_MINUTES}`,
      );
    case 'failed':
      return refusal(
        'approval_failed',
        `The call was approved, and not made: ${end.error} Send it again to ask a person again.`,
      );
    case 'no_answer':
      return refusal(
        'executed_result_not_kept',
        `The call was made, and its response is not returned: ${end.error} Do not repeat it. Audit id: ${auditId}. ${FOR_TEN_MINUTES}`,
      );
    case 'not_kept':
      return refusal(
        'executed_result_not_kept',
        `The call was made, but its response was too large to be stored. Do not repeat it. Audit id: ${auditId}. ${FOR_TEN_MINUTES}`,
      );
  }
}
