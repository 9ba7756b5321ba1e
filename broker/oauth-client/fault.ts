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

/** What to do about errors of RFC 6749 sections 4.1.2.1 and 5.2 that starting again does not correct. */
const REMEDIES: Readonly<Record<string, string>> = {
  invalid_scope: 'An admin corrects the scopes in auth, or allows them to the client at the platform.',
  unauthorized_client: 'An admin allows the client authorization codes at the platform, or corrects client_id.',
  invalid_request:
    'An admin compares client_id, redirect URI and authorization_parameters with what the platform expects.',
  unsupported_response_type: 'An admin allows the client authorization codes at the platform.',
  server_error: 'Try again shortly.',
  temporarily_unavailable: 'Try again shortly.',
};

const remedyFor = (word: string, otherwise: string): string =>
  (Object.hasOwn(REMEDIES, word) ? REMEDIES[word] : undefined) ?? otherwise;

/** What an admin corrects when a server rejects the broker's client. */
const CLIENT_REMEDY =
  'An admin corrects client_id and client_secret in auth (and the scopes there), or the client at the platform, and connects again.';

/** Returns a server's error code (RFC 6749 sections 4.1.2.1 and 5.2) when it has the form of one: other text of a server is not repeated. */
export const errorCodeOf = (text: string): string => (/^[a-z_]{1,64}$/.test(text) ? text : 'an error');

/** Maps an error to a problem. No text of a response is repeated or logged, except an error code. */
export function problemOf(error: unknown, platformId: string, log: Log): OAuthProblem {
  if (error instanceof client.AuthorizationResponseError) {
    const word = errorCodeOf(error.error);
    const detail = `The authorization server denied the authorization (${word}).`;
    return { problem: 'declined', detail: `${detail} ${remedyFor(word, 'Start again.')}` };
  }
  if (error instanceof client.ResponseBodyError) {
    const word = errorCodeOf(error.error);
    log.warn({ platform: platformId, problem: word }, 'authorization server returned an error');
    const detail = `The authorization server of ${platformId} returned an error (${word}).`;
    if (CLIENT_REJECTED.has(word))
      return { problem: 'client_rejected', detail: `${detail} ${CLIENT_REMEDY}`, error: word };
    if (ENDED.has(word)) return { problem: 'invalid_grant', detail: `${detail} Start again.` };
    return { problem: 'failed', detail: `${detail} ${remedyFor(word, 'Try again shortly.')}`, error: word };
  }
  const unreachable = [error, (error as { cause?: unknown })?.cause].find((one) => one instanceof ProviderUnreachable);
  log.warn(
    { platform: platformId, problem: unreachable?.message.slice(0, 200) ?? reasonOf(error) },
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

/** Errors of the library below the OAuth client. Their messages name a member or a claim, and quote nothing of the response; their causes do. */
const DESCRIBING = new Set(['OperationProcessingError', 'UnsupportedOperationError']);

/** Describes an unusable response, for the log: what is wrong with which member, or the HTTP status. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  const { message, cause } = error;
  const reason = cause instanceof Error && DESCRIBING.has(cause.name) ? `: ${cause.message}` : '';
  const status = cause instanceof Response ? ` (status ${cause.status})` : '';
  return `${message}${reason}${status}`.slice(0, 300);
}
