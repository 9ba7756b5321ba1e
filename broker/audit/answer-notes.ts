/** Derives the notes about an answer (besides its status and data) for the flags of its audit row and for `_meta`. */
import type { Followed } from '../egress/redirect.ts';
import type { AuditFlags } from './audit-flags.ts';
import type { OutcomeOf } from './outcome.ts';

/** Returns the flags of an answer that was read completely before it was returned; empty when none apply. */
export function answeredFlags(outcome: OutcomeOf<'answered'>): { flags?: AuditFlags } {
  const { redacted, masked, failed, encoding, bytes } = outcome;
  if (!redacted && !masked && !failed && encoding === undefined && !outcome.followed) return {};
  return {
    flags: {
      redacted: redacted || undefined,
      masked: masked || undefined,
      failed: failed || undefined,
      encoding,
      ...followedFlags(outcome, bytes),
    },
  };
}

/** Returns the flags of a streamed answer: how it ended, and the size and SHA-256 of the request and response bodies. */
export function streamedFlags(outcome: OutcomeOf<'streamed'>): AuditFlags {
  const { ended, received, sent, redacted, masked } = outcome;
  return {
    redacted: redacted || undefined,
    masked: masked || undefined,
    ended,
    answer_bytes: received.bytes,
    answer_sha256: received.sha256,
    request_bytes: sent.bytes,
    request_sha256: sent.sha256,
    ...followedFlags(outcome),
  };
}

/**
 * Returns the flag for a redirect that the broker followed, or was about to follow: the new host and the redirect's status. `bytes`: size
 * of the answer, where no other flag has it.
 */
export const followedFlags = ({ followed }: { followed?: Followed | undefined }, bytes?: number) =>
  followed && {
    followed: { host: followed.host, redirect_status: followed.status, ...(bytes !== undefined && { bytes }) },
  };

/** Returns how many members and values of an answer were masked, and by which rules; undefined when none were. */
export const maskedIn = ({
  masked,
  call,
}: OutcomeOf<'answered'>): { count: number; rules: readonly string[] } | undefined =>
  masked ? { count: masked, rules: call.decided?.verdict.mask?.rules ?? [] } : undefined;

/** Notes in `_meta`: dropped headers, redaction and others. */
export function answerNotes(outcome: OutcomeOf<'answered' | 'held'>): Record<string, unknown> {
  const { droppedHeaders } = outcome.call;
  const notes: Record<string, unknown> = droppedHeaders.length > 0 ? { dropped_headers: droppedHeaders } : {};
  if (outcome.call.traceId !== undefined) notes.trace_id = outcome.call.traceId;
  if (outcome.kind === 'held') return notes;
  const { standing } = outcome.call;
  if (standing) notes.standing_approval = standing;
  if (outcome.call.limits) notes.limits = outcome.call.limits;
  if (outcome.redacted) notes.redacted = true;
  const masked = maskedIn(outcome);
  if (masked) notes.masked = masked;
  if (outcome.encoding !== undefined) notes.encoding = outcome.encoding;
  if (outcome.contentType !== undefined && !isJsonType(outcome.contentType))
    notes.upstream_content_type = outcome.contentType;
  if (outcome.followed !== undefined) notes.upstream_followed = outcome.followed.host;
  if (outcome.location !== undefined) notes.upstream_location = outcome.location;
  if (outcome.headers !== undefined) notes.upstream_headers = outcome.headers;
  return notes;
}

const isJsonType = (type: string): boolean => type === 'application/json' || type.endsWith('+json');
