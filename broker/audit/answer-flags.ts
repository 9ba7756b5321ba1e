/** What the flags of a row say of an answer beside its status: what it was, and where it came from. */
import type { Followed } from '../egress/redirect.ts';
import type { OutcomeOf } from './outcome.ts';

/** Of an answer that was read as a whole; nothing where there is nothing to say. */
export function answeredFlags(outcome: OutcomeOf<'answered'>): { flags?: Record<string, unknown> } {
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

/** Of an answer that was passed on: how it ended, and what went both ways. */
export function streamedFlags(outcome: OutcomeOf<'streamed'>): Record<string, unknown> {
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
 * That the platform redirected and the broker followed, or was to: to which host, and with which status. `bytes`: how long the answer
 * there was, where nothing else says so.
 */
export const followedFlags = ({ followed }: { followed?: Followed | undefined }, bytes?: number) =>
  followed && {
    followed: { host: followed.host, redirect_status: followed.status, ...(bytes !== undefined && { bytes }) },
  };
