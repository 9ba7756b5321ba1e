/** A governed call over HTTP, or from a tool of `/mcp`: its outcome as the reply of `POST /v1/actions`. */
import type { AgentPrincipal } from '../auth/principal.ts';
import { familyOf } from '../calls/call.ts';
import { perform, type WholeCallRequest } from '../calls/perform.ts';
import { Refusal } from './errors.ts';
import { outcomeReply } from './outcome-reply.ts';
import type { Reply } from './reply.ts';
import type { Context } from './route.ts';

type Asked = Pick<Context, 'services' | 'correlationId'> & { who: AgentPrincipal };

/** Throws Refusal for an Idempotency-Key that was used before. */
export async function performCall({ services, who, correlationId }: Asked, request: WholeCallRequest): Promise<Reply> {
  const lease = services.budget.lease(familyOf(who));
  try {
    const reply = await performOnce({ services, who, correlationId }, { ...request, lease });
    return { ...reply, lease };
  } catch (error) {
    lease.release();
    throw error;
  }
}

async function performOnce({ services, who, correlationId }: Asked, request: WholeCallRequest): Promise<Reply> {
  const done = await perform(services, who, request, (outcome) => outcomeReply({ services, correlationId }, outcome));
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
