/** Verifies assertions about who a person is: JWTs of issuers that the organisation trusts (specification, Caller identity). */
import type { JWTPayload } from 'jose';
import { claimsOf } from '../auth/claimed.ts';
import { issuerKeys } from '../auth/issuer-keys.ts';
import type { VerifiedToken } from '../auth/provider-keys.ts';
import type { Broker } from '../broker.ts';
import { findOrganisation } from '../store/organisations.ts';
import { type CallerIssuer, readCallerIssuers } from './caller-issuer.ts';
import type { Identity } from './person-hash.ts';

/** Longest lifetime of an assertion. */
const MAX_SECONDS = 3600;
/** Equal to the limit for asserted identities. */
const MAX_SUBJECT_LENGTH = 256;

/** `detail`: sentences that contain no claim of the assertion. */
export type VerifiedAssertion =
  | { ok: true; identity: Extract<Identity, { issuer: string }> }
  | { ok: false; detail: string };

export type Assertions = {
  verify(organisationId: string, assertion: string): Promise<VerifiedAssertion>;
  /** Returns the issuer as the organisation configured it; undefined when the organisation does not trust it (any more). */
  issuer(organisationId: string, issuer: string): Promise<CallerIssuer | undefined>;
};

/** Returns the verifier. The libraries are loaded with the first assertion. */
export function assertionVerifier(broker: Pick<Broker, 'clock' | 'log' | 'store' | 'outbound'>): Assertions {
  const keysOf = issuerKeys(broker);
  const issuersOf = async (organisationId: string): Promise<CallerIssuer[]> =>
    readCallerIssuers((await findOrganisation(broker.store.db, organisationId))?.caller_issuers ?? null);
  return {
    issuer: async (organisationId, issuer) => (await issuersOf(organisationId)).find((one) => one.issuer === issuer),
    verify: async (organisationId, assertion) => {
      const { iss: claimed } = claimsOf(assertion);
      if (typeof claimed !== 'string') return refused('The assertion is not a JWT that names its issuer (iss).');
      const issuer = (await issuersOf(organisationId)).find((one) => one.issuer === claimed);
      if (!issuer) return refused('The assertion is not of an issuer that the organisation trusts (caller_issuers).');
      const verified = await (await keysOf(issuer)).verify(assertion, issuer.issuer);
      if (verified.kind === 'unavailable')
        return refused('The keys of the issuer cannot be fetched at the moment. Try again shortly.');
      if (verified.kind === 'refused')
        return refused(verified.code === 'invalid_token' ? `${INVALID} ${verified.detail}` : REFUSED[verified.code]);
      return personOf(issuer, verified);
    },
  };
}

const refused = (detail: string): VerifiedAssertion => ({ ok: false, detail });

/** The reason follows, such as a claim that is missing: without it an integrator would look for a wrong key. */
const INVALID = 'The assertion cannot be verified.';
const REFUSED: Record<Exclude<Extract<VerifiedToken, { kind: 'refused' }>['code'], 'invalid_token'>, string> = {
  invalid_signature: 'The signature of the assertion does not match the key that its issuer publishes.',
  token_expired: 'The assertion has expired. Send a new one.',
};

function personOf(
  issuer: CallerIssuer,
  { claims, header }: Extract<VerifiedToken, { kind: 'verified' }>,
): VerifiedAssertion {
  const { algorithms } = issuer;
  if (algorithms && !algorithms.some((one) => one === header.alg))
    return refused('The assertion is signed with an algorithm that the organisation does not accept from this issuer.');
  if (header.jku !== undefined || header.x5u !== undefined || header.jwk !== undefined)
    return refused('The assertion refers to its own keys (jku, x5u or jwk). Leave them out.');
  const audiences = Array.isArray(claims.aud) ? claims.aud : [claims.aud];
  if (!audiences.includes(issuer.audience))
    return refused('The assertion is meant for another audience (aud) than the organisation asks for.');
  if ((claims.exp ?? Number.POSITIVE_INFINITY) - (claims.iat ?? 0) > MAX_SECONDS)
    return refused('The assertion is valid for longer than an hour (exp).');
  const subject = subjectOf(issuer, claims);
  if (subject === undefined)
    return refused('The claim of the assertion that identifies the person is missing, or not usable.');
  return { ok: true, identity: { issuer: issuer.issuer, subject } };
}

/** Returns the subject of an issuer's token; undefined when it names none, or not in a usable form. */
export function subjectOf({ claim = 'sub' }: CallerIssuer, claims: JWTPayload): string | undefined {
  const subject = claims[claim];
  const isUsable =
    typeof subject === 'string' &&
    subject !== '' &&
    subject.length <= MAX_SUBJECT_LENGTH &&
    /^[^\p{Cc}\p{Cs}]+$/u.test(subject);
  return isUsable ? subject : undefined;
}
