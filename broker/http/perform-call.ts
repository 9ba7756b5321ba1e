/** Performs a governed call for HTTP, or for a tool of `/mcp`. */
import type { WholeOutcome } from '../audit/outcome.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import { familyOf } from '../calls/call.ts';
import { perform, type WholeCallRequest } from '../calls/perform.ts';
import { Refusal } from './errors.ts';
import type { ReplyContext } from './outcome-reply.ts';
import type { Reply } from './reply.ts';

type CallContext = ReplyContext & { who: AgentPrincipal };
/** Converts an outcome into the answer of the entry point; the answer is also stored for the Idempotency-Key. */
type Write<Answer extends Reply> = (context: ReplyContext, outcome: WholeOutcome) => Answer;

/** Throws Refusal when the Idempotency-Key was used for another request, or the outcome of its call is not known, or not yet. */
export async function performCall<Answer extends Reply>(
  { services, who, correlationId }: CallContext,
  request: WholeCallRequest,
  write: Write<Answer>,
): Promise<Answer | Reply> {
  const lease = services.budget.lease(familyOf(who));
  try {
    const reply = await performOnce({ services, who, correlationId }, { ...request, lease }, write);
    return { ...reply, lease };
  } catch (error) {
    lease.release();
    throw error;
  }
}

async function performOnce<Answer extends Reply>(
  { services, who, correlationId }: CallContext,
  request: WholeCallRequest,
  write: Write<Answer>,
): Promise<Answer | Reply> {
  const done = await perform(services, who, request, (outcome) => write({ services, correlationId }, outcome));
  switch (done.kind) {
    case 'answered':
      return done.answer;
    case 'again':
      return { ...done.response, headers: { 'Idempotency-Replayed': 'true' } };
    case 'key_refused': {
      const { code, detail, auditId: audit_id } = done;
      const platform = request.asked.ok ? request.asked.action.platform : '';
      throw new Refusal(code, detail, {
        // Members of every 409 of this route (specification, Governed call, 409).
        extra: { platform, consent_requested: false, message: detail, audit_id },
        ...(code === 'idempotency_in_progress' && { headers: { 'Retry-After': '2' } }),
      });
    }
  }
}
