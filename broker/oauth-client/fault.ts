/** Maps errors of the OAuth library and of egress to problems, for people and for the log. */

import * as client from 'openid-client';
import { ProviderUnreachable } from '../egress/provider-fetch.ts';
import type { Log } from '../log/log.ts';
import type { OAuthProblem } from './problem.ts';

/** `invalid_grant` of RFC 6749, and its equivalents at GitHub and Slack. */
const ENDED = new Set([
  'invalid_grant',
  'bad_refresh_token',
  'bad_verification_code',
  'invalid_refresh_token',
  'invalid_code',
  'token_revoked',
]);

/** Errors of RFC 6749 section 5.2 for a misconfigured client, and their equivalents at GitHub and Slack. */
const CLIENT_REJECTED = new Set([
  'invalid_client',
  'unauthorized_client',
  'invalid_scope',
  'unsupported_grant_type',
  'incorrect_client_credentials',
  'bad_client_secret',
  'invalid_client_id',
]);

/** Returns a server's error code (RFC 6749 sections 4.1.2.1 and 5.2) when it has the form of one: other text of a server is not repeated. */
export const errorCodeOf = (text: string): string => (/^[a-z_]{1,64}$/.test(text) ? text : 'an error');

/** Maps an error to a problem. Only the library's message is logged, not its causes: those quote the response. */
export function problemOf(error: unknown, platformId: string, log: Log): OAuthProblem {
  if (error instanceof client.AuthorizationResponseError)
    return {
      problem: 'declined',
      detail: `The authorization server denied the authorization (${errorCodeOf(error.error)}). Start again.`,
    };
  if (error instanceof client.ResponseBodyError) {
    const word = errorCodeOf(error.error);
    log.warn({ platform: platformId, problem: word }, 'authorization server returned an error');
    const detail = `The authorization server of ${platformId} returned an error (${word}).`;
    if (CLIENT_REJECTED.has(word)) return { problem: 'client_rejected', detail, error: word };
    return { problem: ENDED.has(word) ? 'invalid_grant' : 'failed', detail };
  }
  const unreachable = [error, (error as { cause?: unknown })?.cause].find((one) => one instanceof ProviderUnreachable);
  const problem = unreachable ?? error;
  log.warn(
    { platform: platformId, problem: problem instanceof Error ? problem.message.slice(0, 200) : 'unknown' },
    'request to an authorization server failed',
  );
  return unreachable
    ? {
        problem: 'unreachable',
        detail: `The authorization server of ${platformId} could not be reached. Try again shortly.`,
      }
    : {
        problem: 'failed',
        detail: `The authorization server of ${platformId} sent a response that cannot be used. The broker's log has the details.`,
      };
}
