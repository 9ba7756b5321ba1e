/** Flags and details of git requests in audit rows. */
import type { AuditFlags } from './audit-flags.ts';
import { reachOf } from './effect.ts';
import type { NotPassedOn, OutcomeOf, RecordedGit } from './outcome.ts';

const NOT_PASSED_ON: Record<NotPassedOn, { reason: string; detail: string }> = {
  auth_refused: {
    reason: 'upstream_auth_failed',
    detail: 'The code host refused the credential of the connection.',
  },
  not_found: {
    reason: 'upstream_not_found',
    detail: 'The code host has no such repository, or does not show it to this credential.',
  },
  redirected: {
    reason: 'upstream_unreachable',
    detail: 'The code host redirects elsewhere, which is not followed: the repository may have been renamed.',
  },
  unexpected: { reason: 'upstream_unreachable', detail: 'The response of the code host is not a git response.' },
};

/** Detail of a push whose answer is incomplete. Only the code host can tell which of the refs changed. */
export const CUT_PUSH = 'The push did not complete: the code host may or may not have changed the refs.';

/**
 * Returns the refs that a push asks to change, whether or not the push was made. `pushed_refs` is in the receipt, too. Of push options
 * only the names are kept: a value may be a secret.
 */
export function pushFlags({ refs, pushOptions }: RecordedGit): AuditFlags {
  if (refs.length === 0) return {};
  const options = [...new Set(pushOptions.map((one) => one.split('=', 1)[0]))];
  return {
    pushed_refs: refs.map(({ name, action }) => ({ ref: name, action })),
    ...(options.length > 0 && { push_options: options }),
  };
}

/**
 * Returns what the code host reported about a push whose answer is complete; empty for an incomplete answer, whose row is
 * `outcome_unknown`. `refused_refs` and `push_report` are in the receipt, too.
 */
export function reportFlags({ ended, report }: OutcomeOf<'streamed'>): Record<string, unknown> {
  if (report === undefined || ended !== 'complete') return {};
  const { refused, absent } = report;
  return {
    ...(refused.length > 0 && { failed: true, refused_refs: refused }),
    ...(absent !== undefined && { push_report: absent }),
  };
}

/** Returns the columns for an answer of a code host that is not a git response. */
export function notPassedOn(outcome: OutcomeOf<'not_passed_on'>) {
  const { cause, upstreamStatus, sent } = outcome;
  const flags = {
    code: cause,
    ...(reachOf(outcome) === 'unknown' && { outcome: 'unknown' }),
    ...(sent && { request_bytes: sent.bytes }),
  };
  return { ...NOT_PASSED_ON[cause], upstreamStatus, flags };
}
