/** What audit rows say of git requests. */
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
  unexpected: { reason: 'upstream_unreachable', detail: 'The answer of the code host is not one of git.' },
};

/** Of a push whose answer did not come as a whole. Only the code host knows which of the refs it has changed. */
export const CUT_PUSH = 'The push did not come to its end: the code host may have changed the refs, or not.';

/**
 * What a push asks to change, whether it was made or not: `pushed_refs` stands in the receipt, too. Of its options only the names: a value
 * may be a secret.
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
 * What the code host reports of a push whose answer came as a whole. Of another one its row says that nobody knows. The receipt has
 * `refused_refs` and `push_report`, too.
 */
export function reportFlags({ ended, report }: OutcomeOf<'streamed'>): Record<string, unknown> {
  if (report === undefined || ended !== 'complete') return {};
  const { refused, absent } = report;
  return {
    ...(refused.length > 0 && { failed: true, refused_refs: refused }),
    ...(absent !== undefined && { push_report: absent }),
  };
}

/** Of an answer that was not git's. */
export function notPassedOn(outcome: OutcomeOf<'not_passed_on'>) {
  const { cause, upstreamStatus, sent } = outcome;
  const flags = {
    code: cause,
    ...(reachOf(outcome) === 'unknown' && { outcome: 'unknown' }),
    ...(sent && { request_bytes: sent.bytes }),
  };
  return { ...NOT_PASSED_ON[cause], upstreamStatus, flags };
}
