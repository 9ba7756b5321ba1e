/** Converts the broker's replies to typed values. */
import type { Action, CallOutcome } from './action.ts';
import { BrokerError, errorOf } from './broker-error.ts';
import type { Permissions } from './permissions.ts';
import { readOutcome } from './read-outcome.ts';
import { bodyOf } from './reply-body.ts';
import type { BrokerReply } from './send.ts';

/** A value, or an error. */
export type Answer<T> = { ok: true; value: T } | { ok: false; error: BrokerError };

export type AccessRequest = { requestToken: string; reasonCode: string; message: string };
/** A link for a person, valid until `expiresAt`. */
export type StartedConsent = { consentUrl: string; consentToken: string; expiresAt: string };
export type ConsentStatus = { status: 'pending' | 'completed' | 'expired' };
export type AccessStatus = { status: 'pending' | 'approved' | 'denied' | 'expired'; note: string | undefined };

type Body = Record<string, unknown>;

/**
 * Converts a reply to the value that `read` returns for its body, or to an error when the status is one or `read` returns undefined (the
 * response did not come from a broker).
 */
export function readAnswer<T>(reply: BrokerReply, read: (body: Body, reply: BrokerReply) => T | undefined): Answer<T> {
  const body = bodyOf(reply);
  const value = reply.status >= 300 && reply.status !== 304 ? undefined : read(body, reply);
  return value === undefined ? { ok: false, error: errorOf(reply, body) } : { ok: true, value };
}

/** Returns the outcome of a call, from its reply or from the error that prevented one. */
export function outcomeOf(action: Pick<Action, 'method'>, reply: BrokerReply | BrokerError): CallOutcome {
  const outcome: CallOutcome =
    reply instanceof BrokerError ? { kind: 'failed', error: reply } : readOutcome(reply, bodyOf(reply));
  if (outcome.kind !== 'failed' || action.method !== 'GET') return outcome;
  const { error } = outcome;
  return { kind: 'failed', error: new BrokerError(error.code, error.message, { ...error, mayHaveActed: false }) };
}

export type KnownPermissions = { etag: string; permissions: Permissions };

/**
 * `before`: the permissions whose ETag was sent. `changed`: whether the version differs from `before`. Returns undefined when the body has no
 * permissions.
 */
export function readPermissions(
  before: KnownPermissions | undefined,
  body: Body,
  reply: BrokerReply,
): { known: KnownPermissions; changed: boolean } | undefined {
  if (reply.status === 304 && before) return { known: before, changed: false };
  const permissions = body.data as Permissions | undefined;
  if (permissions?.version === undefined) return undefined;
  const etag = reply.headers.get('etag') ?? `"${permissions.version}"`;
  return { known: { etag, permissions }, changed: permissions.version !== before?.permissions.version };
}

export const readAccessRequest = ({ request_token, reason_code, message }: Body): AccessRequest | undefined =>
  request_token === undefined
    ? undefined
    : { requestToken: String(request_token), reasonCode: String(reason_code), message: String(message) };

export const readAccessStatus = ({ status, note }: Body): AccessStatus | undefined =>
  status === undefined
    ? undefined
    : { status: status as AccessStatus['status'], note: typeof note === 'string' ? note : undefined };

export const readStartedConsent = ({ consent_url, consent_token, expires_at }: Body): StartedConsent | undefined =>
  consent_token === undefined
    ? undefined
    : { consentUrl: String(consent_url), consentToken: String(consent_token), expiresAt: String(expires_at) };

export const readConsentStatus = ({ status }: Body): ConsentStatus | undefined =>
  status === undefined ? undefined : { status: status as ConsentStatus['status'] };
