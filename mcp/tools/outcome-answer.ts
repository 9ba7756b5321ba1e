/** Maps the outcome of a call to a tool result. */
import type { CallOutcome } from '../client/action.ts';
import type { Approval } from '../client/approval.ts';
import type { BrokerError } from '../client/broker-error.ts';
import { type About, afterDenial, afterError, afterHalt, afterNotReady, withEarlier } from './advice.ts';
import { type Answered, type Structured, type ToolAnswer, toolAnswer } from './answer.ts';

type Settled = Exclude<CallOutcome, { kind: 'held' }>;

/** `written`: the call may have side effects. `joins`: an identical one was begun before, with unknown outcome. */
export function outcomeAnswer(
  outcome: Settled,
  about: About,
  { written, joins = false }: { written: boolean; joins?: boolean },
): ToolAnswer {
  const next = (words: string) => (joins ? withEarlier(words) : words);
  switch (outcome.kind) {
    case 'answered':
      return toolAnswer({
        status: 'answered',
        upstream_status: outcome.upstreamStatus,
        data: outcome.data,
        encoding: outcome.encoding,
        media_type: outcome.contentType,
        location: outcome.location,
        followed: outcome.followed,
        ...withHeaders(outcome.headers),
        ...(outcome.droppedHeaders.length > 0 && { dropped_headers: [...outcome.droppedHeaders] }),
        audit_id: outcome.auditId,
        ...(outcome.repeated && { detail: 'This is the first answer to an identical call. Nothing was sent again.' }),
      });
    case 'denied':
      return toolAnswer({
        status: 'refused',
        code: outcome.reason,
        detail: `Refused (${outcome.reason}): ${outcome.detail}`,
        ...(outcome.violating.length > 0 && { violating: [...outcome.violating] }),
        ...(outcome.limit && { limit: outcome.limit }),
        retry_after_seconds: outcome.retryAfterSeconds,
        audit_id: outcome.auditId,
        next: next(afterDenial(outcome, about)),
      });
    case 'halted':
      return toolAnswer({
        status: 'halted',
        code: outcome.reason,
        detail: `This agent is halted (${outcome.halt.cause}): ${outcome.halt.detail ?? outcome.detail}`,
        retry_after_seconds: outcome.halt.retry_after_seconds ?? undefined,
        audit_id: outcome.auditId,
        next: next(afterHalt(outcome)),
      });
    case 'not_ready':
      if (outcome.consentToken !== undefined) return consentAnswer(outcome);
      return toolAnswer({
        status: 'not_ready',
        code: outcome.code,
        detail: outcome.message,
        audit_id: outcome.auditId,
        next: next(afterNotReady(outcome, about)),
      });
    case 'failed':
      return errorAnswer(outcome.error, written, outcome.error.mayHaveActed ? undefined : next);
  }
}

/**
 * A call for a person who has not connected the platform, or consented to too little. It may have been sent, where the platform refused it.
 * `words`: an additional sentence.
 */
export function consentAnswer(outcome: Extract<Settled, { kind: 'not_ready' }>, words?: string): ToolAnswer {
  const { code, message, consentUrl, expiresAt, auditId } = outcome;
  return toolAnswer({
    status: 'not_ready',
    code,
    detail: [message, words, 'The call was not made.'].filter(Boolean).join(' '),
    consent_url: consentUrl,
    expires_at: expiresAt,
    audit_id: auditId,
    next: `Give the link ${consentUrl} to the person for whom the call is, and to nobody else. Make the identical call again when they have finished: it waits up to 50 seconds for them, or continues.`,
  });
}

function withHeaders(headers: Readonly<Record<string, string>>): Pick<Structured, 'upstream_headers'> {
  return Object.keys(headers).length === 0 ? {} : { upstream_headers: { ...headers } };
}

export function errorAnswer(error: BrokerError, written: boolean, next = (words: string) => words): ToolAnswer {
  return toolAnswer({
    status: 'failed',
    code: error.code,
    detail: error.message,
    retry_after_seconds: error.retryAfterSeconds,
    // A failed call that was recorded: its receipt has what is known of it.
    ...(typeof error.body.audit_id === 'string' && { audit_id: error.body.audit_id }),
    // An internal failure of the broker: its log has the details under this id.
    ...((error.status ?? 0) >= 500 && { correlation_id: error.correlationId }),
    next: next(afterError(error, written)),
  });
}

/** When the state of something that was begun before could not be read. `unread`: a sentence about it. */
const unreadAnswer = (error: BrokerError, unread: string): ToolAnswer =>
  errorAnswer(error, false, () => afterError(error, false, unread));

export const unreadHeldAnswer = (error: BrokerError): ToolAnswer =>
  unreadAnswer(error, 'Whether the held call was approved could not be read: it may have been made.');

export const unreadAccessAnswer = (error: BrokerError): ToolAnswer =>
  unreadAnswer(error, 'The owners were asked, but whether they decided could not be read.');

/** When the answer to the request itself was lost. The same platform and scope are one request while it is pending. */
export const lostAccessAnswer = (error: BrokerError): ToolAnswer =>
  unreadAnswer(error, 'The owners may have been asked. To ask again is safe: it is the same request then.');

/** What a held call does, in the words shown to the person who decides: ` It would create an issue in acme/shop.` */
export const wouldDoText = ({ sentence }: { sentence?: string | undefined }): string =>
  sentence === undefined ? '' : ` It would ${sentence}.`;

/** A held call that is not final. `words`: an additional sentence. */
export function pendingAnswer(
  held: {
    approvalId: string;
    approvalUrl: string | undefined;
    sentence?: string | undefined;
    expiresAt: string | undefined;
    auditId: string | undefined;
  },
  words = 'The call is held until a person decides. Nothing was sent yet.',
): ToolAnswer {
  const link = held.approvalUrl === undefined ? '' : ` The person decides at ${held.approvalUrl}`;
  return toolAnswer({
    status: 'pending_approval',
    approval_id: held.approvalId,
    approval_url: held.approvalUrl,
    expires_at: held.expiresAt,
    audit_id: held.auditId,
    detail: `${words}${wouldDoText(held)}${link}`,
    next: `Show the person the link. Do not submit the call again. Call check_approval with approval_id "${held.approvalId}": it waits up to 50 seconds; repeat it while it says pending_approval, or go on with other work and come back.`,
  });
}

/** Maps the state of an approval to a tool result. */
export function approvalAnswer(approval: Approval): ToolAnswer {
  const { approvalId: approval_id, auditId: audit_id, corrected } = approval;
  const facts = (more: Omit<Answered, 'approval_id' | 'audit_id'>) =>
    toolAnswer({ approval_id, audit_id, ...(corrected && { corrected }), ...more });
  // The agent has to continue from the corrected call, not from its own.
  const what = corrected
    ? 'A person corrected the call and approved it: it was made once, with the endpoint and data in "corrected" in place of yours.'
    : undefined;
  switch (approval.state) {
    case 'pending':
      return pendingAnswer(approval);
    case 'running':
      return pendingAnswer({ ...approval, sentence: undefined }, 'Approved, and being made now.');
    case 'done':
      return facts({
        status: 'answered',
        upstream_status: approval.result.status,
        data: approval.result.data,
        encoding: approval.result.encoding,
        media_type: approval.result.contentType,
        location: approval.result.location,
        followed: approval.result.followed,
        ...withHeaders(approval.result.headers),
        ...(approval.result.truncated && { truncated: true, bytes: approval.result.bytes }),
        note: approval.note,
        detail: what ?? 'A person approved the call, and it was made once.',
      });
    case 'not_made':
      return facts({ status: 'failed', note: approval.note, ...notMade(approval) });
    case 'denied':
      return facts({
        status: 'denied',
        code: 'denied',
        detail: 'A person denied the call. Nothing was sent.',
        note: approval.note,
        next: 'Do not submit it again and do not try another way, unless the person says so.',
      });
    case 'expired':
      return facts({
        status: 'expired',
        code: 'expired',
        detail: 'Nobody decided in time. Nothing was sent.',
        next: 'Ask the person whether it is still wanted before you submit it again.',
      });
  }
}

/** Whether the call was made, and its result is returned later, when the agent may make such a call again (docs/agents.md). */
export const isWithheld = (approval: Approval): boolean =>
  approval.state === 'not_made' && approval.error.startsWith('result_withheld');

/** An approved call without a result: it was not made, its outcome is unknown, or its result is not returned. */
function notMade(approval: Extract<Approval, { state: 'not_made' }>): Pick<Answered, 'code' | 'detail' | 'next'> {
  const { approvalId, error, mayHaveActed } = approval;
  const code = /^\w+/.exec(error)?.[0] ?? 'not_made';
  if (isWithheld(approval))
    return {
      code,
      detail: `A person approved the call, and it was made once, but you do not get its response now: ${error}`,
      next: `Do not submit the call again. Tell the person you work for. Once this agent may make such a call again, check_approval with approval_id "${approvalId}" returns the response.`,
    };
  return {
    code,
    detail: `A person approved the call, but it was not made as it should: ${error}`,
    next: mayHaveActed
      ? 'The platform may have acted: look there with read_platform before you ask again.'
      : 'It is not made later. When the reason no longer applies, submit the call again.',
  };
}
