/** What an error of the library, or of the way out, means: for people, and for the log. */
import * as client from 'openid-client';
import type { Broker } from '../broker.ts';
import { ProviderUnreachable } from '../egress/provider-fetch.ts';
import type { OAuthProblem } from './problem.ts';

/** What RFC 6749 calls invalid_grant, and what GitHub and Slack call it. */
const ENDED = new Set([
  'invalid_grant',
  'bad_refresh_token',
  'bad_verification_code',
  'invalid_refresh_token',
  'invalid_code',
  'token_revoked',
]);

/** What RFC 6749 section 5.2 has for a client that is not set up as it should be, and what GitHub and Slack call it. */
const CLIENT_REJECTED = new Set([
  'invalid_client',
  'unauthorized_client',
  'invalid_scope',
  'unsupported_grant_type',
  'incorrect_client_credentials',
  'bad_client_secret',
  'invalid_client_id',
]);

/** The name of an error as servers say it (RFC 6749 sections 4.1.2.1 and 5.2): nothing else of theirs is told. */
const wordOf = (text: string): string => (/^[a-z_]{1,64}$/.test(text) ? text : 'an error');

/** What an error means. Of the library's own words only the first go into the log: its causes quote what was answered. */
export function problemOf(error: unknown, platformId: string, log: Broker['log']): OAuthProblem {
  if (error instanceof client.AuthorizationResponseError)
    return {
      problem: 'declined',
      detail: `The authorization server did not give its consent (${wordOf(error.error)}). Begin again.`,
    };
  if (error instanceof client.ResponseBodyError) {
    const word = wordOf(error.error);
    log.warn({ platform: platformId, problem: word }, 'an authorization server refused');
    const detail = `The authorization server of ${platformId} refused (${word}).`;
    if (CLIENT_REJECTED.has(word)) return { problem: 'client_rejected', detail, error: word };
    return { problem: ENDED.has(word) ? 'invalid_grant' : 'failed', detail };
  }
  const unreachable = [error, (error as { cause?: unknown })?.cause].find((one) => one instanceof ProviderUnreachable);
  const problem = unreachable ?? error;
  log.warn(
    { platform: platformId, problem: problem instanceof Error ? problem.message.slice(0, 200) : 'unknown' },
    'an authorization server could not be used',
  );
  return unreachable
    ? {
        problem: 'unreachable',
        detail: `The authorization server of ${platformId} could not be reached. Try again shortly.`,
      }
    : {
        problem: 'failed',
        detail: `The authorization server of ${platformId} answered with something that cannot be used. The broker's log says what.`,
      };
}
