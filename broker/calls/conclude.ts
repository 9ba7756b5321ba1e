/** Handles the result of the upstream request: breakers, connection status, and the outcome of the call. */
import type { Outcome, UpstreamAnswer } from '../audit/outcome.ts';
import { beginningOf, piiKinds } from '../audit/pii.ts';
import type { Changing } from '../audit/record-change.ts';
import type { Broker } from '../broker.ts';
import { BODY_CUT, ENDED_HERE } from '../egress/unreachable.ts';
import type { CompiledPlatform } from '../facts/compiled.ts';
import type { ConnectionFacts } from '../facts/connection-facts.ts';
import { keepWantedScopes } from '../oauth-client/wanted-scopes.ts';
import { at, hasSign, isObject } from '../platforms/error-sign.ts';
import type { CallAsk } from '../policy/call-ask.ts';
import { isGraphql } from '../policy/operation.ts';
import { setCredentialStatus } from '../store/connections.ts';
import { closeByTrial, countUpstreamFailure, type Trial } from './breakers.ts';
import type { Call } from './call.ts';
import { orAwaitingConfirmation } from './connect.ts';
import { holderOf } from './credentials.ts';
import type { Concluded } from './forwarded.ts';
import { markRefused } from './mark-refused.ts';
import type { FreshRefusals } from './token-renewal.ts';

type Answered = Extract<Concluded, { kind: 'answer' }>;
type Services = Changing & { freshRefusals: FreshRefusals };
/** `trials`: the trials of half-open breakers that this call was. */
type Sent<Result = Concluded> = {
  trials: readonly Trial[];
  platform: CompiledPlatform;
  connection: ConnectionFacts;
  forwarded: Result;
};

const INSUFFICIENT_CONSENT = 'The platform refused the call: this person has consented to less than it needs.';

/** Codes that end a call without being a failure of the platform. */
const NO_FAILURES: ReadonlySet<string> = new Set([
  ...ENDED_HERE,
  'body_gone',
  ...BODY_CUT,
  // No token was available: counting one person's missing token would open the breaker for everybody.
  'token_unavailable',
  'client_rejected',
  'redirect_refused',
  'redirected_again',
]);

/** Whether a status is a failure of the platform and not an answer about the call (RFC 9110 section 15.6). */
export const isFailureOf = (status: number): boolean => status >= 500;

/** Turns the result of a forwarded call into its outcome, and updates the connection's status and the breakers. */
export async function concludeCall(services: Services, call: Call, sent: Sent): Promise<Outcome> {
  const { trials, platform, connection, forwarded } = sent;
  const { broker } = services;
  switch (forwarded.kind) {
    case 'answer':
      return await concludeAnswer(services, call, { trials, platform, connection, forwarded });
    case 'unreachable': {
      const { code, detail, sent: isSent, followed } = forwarded;
      if (!NO_FAILURES.has(code))
        await bestEffort(broker, () => countUpstreamFailure(services, call.who, call.action.platform, trials));
      return { kind: 'unreachable', code, detail, sent: isSent, followed, call: call.record };
    }
    case 'streamed': {
      const { status, streamed, followed } = forwarded;
      const isFailure = isFailureOf(status) || streamed.ended === 'upstream_closed' || streamed.ended === 'idle';
      await bestEffort(broker, async () => {
        if (isFailure) await countUpstreamFailure(services, call.who, call.action.platform, trials);
        else if (trials.length > 0) await closeByTrial(services, trials);
        if (status < 300 || followed) await markWorking(services, call.record, connection);
      });
      return { kind: 'streamed', upstreamStatus: status, ...streamed, followed, call: call.record };
    }
    case 'not_passed_on': {
      const { status, cause, sent: uploaded } = forwarded;
      if (isFailureOf(status))
        await bestEffort(broker, () => countUpstreamFailure(services, call.who, call.action.platform, trials));
      else if (trials.length > 0) await bestEffort(broker, () => closeByTrial(services, trials));
      return { kind: 'not_passed_on', cause, upstreamStatus: status, sent: uploaded, call: call.record };
    }
    case 'refused_locally':
      return await concludeRefused(broker, call, connection, forwarded);
  }
}

/**
 * Removes the mark of a refused credential, because the platform accepted it. `lapsed`: the token is about to end, so the mark stays.
 */
async function markWorking(
  { broker, freshRefusals }: Services,
  { organisationId }: Call['record'],
  connection: ConnectionFacts,
  lapsed = false,
): Promise<void> {
  const place = holderOf(organisationId, connection);
  freshRefusals.forget(place.id);
  if (connection.status !== 'reauth_needed' || lapsed) return;
  await setCredentialStatus(broker.store.db, place, 'active', { credential: connection.credential });
}

/** Runs bookkeeping after a call; a failure is logged and never prevents the outcome from being recorded. */
async function bestEffort<Done>(broker: Pick<Broker, 'log'>, work: () => Promise<Done>): Promise<Done | undefined> {
  try {
    return await work();
  } catch (error) {
    broker.log.error({ err: error }, 'post-call bookkeeping failed (connection status or circuit breaker not updated)');
    return undefined;
  }
}

async function concludeRefused(
  broker: Pick<Broker, 'log' | 'store'>,
  { record }: Call,
  connection: ConnectionFacts,
  { error, detail }: Extract<Concluded, { kind: 'refused_locally' }>,
): Promise<Outcome> {
  const { id: connectionId } = connection;
  if (error === 'credential_malformed' || error === 'no_token') {
    // Marks the connection for the owner. Nothing was sent, so the platform did not refuse the credential.
    await bestEffort(broker, () => markRefused({ broker }, record, connection));
  }
  if (error === 'credential_malformed')
    return orAwaitingConfirmation(connection, {
      kind: 'reauth_needed',
      connectionId,
      cause: 'malformed',
      detail,
      call: record,
    });
  if (error === 'no_token' || error === 'no_token_for_call')
    return { kind: 'reauth_needed', connectionId, cause: 'no_token', detail, call: record };
  if (error === 'credential_over')
    return orAwaitingConfirmation(connection, {
      kind: 'reauth_needed',
      connectionId,
      cause: 'refresh_failed',
      detail,
      call: record,
    });
  const code = error === 'endpoint_refused' ? 'invalid_endpoint' : 'invalid_request';
  return { kind: 'invalid', code, detail, call: record };
}

async function concludeAnswer(
  services: Services,
  { record, who, action, path, git }: Call,
  {
    trials,
    platform,
    connection,
    forwarded: { status, read, raw, lapsed, justIssued, followed, wantedScopes = [] },
  }: Sent<Answered>,
): Promise<Outcome> {
  const { broker, freshRefusals } = services;
  // Withheld and binary answers are not scanned for PII.
  const responsePii = read.kind === 'data' && !read.encoding ? piiKinds(beginningOf(read.data)) : null;
  const place = holderOf(record.organisationId, connection);
  // The credential is never sent to the target of a redirect, so a 401 from there says nothing about it.
  const isUnauthorized = status === 401 && !followed;
  // A just-issued token is valid: the refusal concerns this call only, unless other calls are refused too, or were by any replica.
  const isOfCall = () =>
    justIssued &&
    connection.status !== 'reauth_needed' &&
    !freshRefusals.note(place.id, `${action.method} ${path}`, broker.clock());
  if (isUnauthorized && !isOfCall()) {
    await bestEffort(broker, () => markRefused(services, record, connection));
    return orAwaitingConfirmation(connection, {
      kind: 'reauth_needed',
      connectionId: connection.id,
      cause: 'refused',
      responsePii,
      call: record,
    });
  }
  if (isFailureOf(status)) await bestEffort(broker, () => countUpstreamFailure(services, who, action.platform, trials));
  else {
    if (!isUnauthorized) await bestEffort(broker, () => markWorking(services, record, connection, lapsed));
    if (trials.length > 0) await bestEffort(broker, () => closeByTrial(services, trials));
  }
  // Consent cannot add scopes that were already granted.
  const missing = wantedScopes.filter((scope) => !connection.upstreamScopes?.includes(scope));
  const helps = missing.length > 0 && platform.manifest.auth.type === 'oauth2';
  if (helps && (await bestEffort(broker, () => keepWantedScopes(broker.store.db, place, missing)))) {
    const refused = { responsePii };
    return connection.personTokens === undefined
      ? { kind: 'needs_consent', connectionId: connection.id, scope: action.scope, refused, call: record }
      : orAwaitingConfirmation(connection, {
          kind: 'consent_required',
          reason: 'not_consented',
          detail: INSUFFICIENT_CONSENT,
          isTooLittle: true,
          refused,
          call: record,
        });
  }
  // For git, only a 401 reaches this point.
  if (git) return { kind: 'not_passed_on', cause: 'auth_refused', upstreamStatus: status, call: record };
  if (read.kind === 'blocked')
    return { kind: 'response_blocked', cause: read.cause, upstreamStatus: status, followed, call: record };
  const answer = {
    dataJson: read.data,
    upstreamStatus: status,
    contentType: read.contentType,
    bytes: read.bytes,
    encoding: read.encoding,
    location: read.location,
    headers: read.headers,
    redacted: read.redacted || raw?.redacted === true,
    masked: read.masked,
    followed,
    raw,
  };
  return {
    kind: 'answered',
    ...answer,
    failed: reportsFailure(platform, { method: action.method, path }, answer),
    responsePii,
    call: record,
  };
}

/** Longest JSON text, in bytes, that is parsed again for error signs: errors are short. */
const MAX_ERROR_BYTES = 256 * 1024;

/**
 * Whether a 2xx answer says in its body that the platform did not do what was asked: an error of an MCP tool (`isError`) or of JSON-RPC,
 * `errors` of GraphQL (GraphQL specification, section 7.1), or the manifest's `failed_if`.
 *
 * @param answer as it is passed on; non-JSON and too long bodies count as not failed
 */
function reportsFailure(
  { manifest, rules }: Pick<CompiledPlatform, 'manifest' | 'rules'>,
  call: Pick<CallAsk, 'method' | 'path'>,
  answer: Pick<UpstreamAnswer, 'upstreamStatus' | 'encoding' | 'dataJson'>,
): boolean {
  const { upstreamStatus: status, encoding, dataJson } = answer;
  const { failed_if: sign } = manifest;
  const isTool = rules.kind === 'mcp';
  const hasErrors = isGraphql(rules, call);
  if (status < 200 || status > 299 || !(isTool || hasErrors || sign)) return false;
  if (encoding !== undefined || dataJson.length > MAX_ERROR_BYTES) return false;
  const data: unknown = JSON.parse(dataJson.toString());
  if (isTool) return at(data, '/isError') === true || isObject(at(data, '/error'));
  if (hasErrors) return lengthOf(at(data, '/errors')) > 0;
  return hasSign(sign, data);
}

const lengthOf = (value: unknown): number => (Array.isArray(value) ? value.length : 0);
