/** A governed call over HTTP, or from a tool of `/mcp`. */
import type { WholeOutcome } from '../audit/outcome.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import { familyOf } from '../calls/call.ts';
import { perform, type WholeCallRequest } from '../calls/perform.ts';
import { Refusal } from './errors.ts';
import type { Told } from './outcome-reply.ts';
import type { Reply } from './reply.ts';

type Asked = Told & { who: AgentPrincipal };
/** An outcome as the entry point answers it, and as it is kept for the same Idempotency-Key. */
type Write<Answer extends Reply> = (context: Told, outcome: WholeOutcome) => Answer;

/** Throws Refusal for an Idempotency-Key that was used before. */
export async function performCall<Answer extends Reply>(
  { services, who, correlationId }: Asked,
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
  { services, who, correlationId }: Asked,
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
        // As every 409 of this route says (specification, Governed call, 409).
        extra: { platform, consent_requested: false, message: detail, audit_id },
        ...(code === 'idempotency_in_progress' && { headers: { 'Retry-After': '2' } }),
      });
    }
  }
}
