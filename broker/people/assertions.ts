/** Verifies assertions about who a person is: JWTs of issuers that the organisation trusts (specification, Caller identity). */
import type { JSONWebKeySet, JWTPayload } from 'jose';
import type { providerClient } from '../auth/provider-client.ts';
import type { ProviderKeys, VerifiedToken } from '../auth/provider-keys.ts';
import type { Broker } from '../broker.ts';
import { decodeBase64url } from '../crypto/base64url.ts';
import { providerFetch } from '../egress/provider-fetch.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import { findOrganisation } from '../store/organisations.ts';
import { type CallerIssuer, readCallerIssuers } from './caller-issuer.ts';
import type { Identity } from './person-hash.ts';

/** An assertion lives at most so long. */
const LONGEST_SECONDS = 3600;
/** As the sources of asserted identities. */
const MOST_SUBJECT = 256;
/** Keys of so many issuers are kept. */
const KEPT = 200;

/** `detail`: a sentence without anything that the assertion says. */
export type VerifiedAssertion =
  | { ok: true; identity: Extract<Identity, { issuer: string }> }
  | { ok: false; detail: string };

export type Assertions = {
  verify(organisationId: string, assertion: string): Promise<VerifiedAssertion>;
  /** The issuer as the organisation configured it; undefined: it trusts it no more. */
  issuer(organisationId: string, issuer: string): Promise<CallerIssuer | undefined>;
};

/** Makes it. The libraries are loaded with the first assertion. */
export function assertionVerifier(broker: Pick<Broker, 'clock' | 'log' | 'store' | 'outbound'>): Assertions {
  const keys = recentlyUsed<ProviderKeys>(KEPT);
  const keysOf = async (issuer: CallerIssuer): Promise<ProviderKeys> => {
    const place = JSON.stringify([issuer.issuer, issuer.jwks_uri ?? null]);
    const found = keys.get(place);
    if (found) return found;
    const [{ providerKeys }, provider] = await Promise.all([
      import('../auth/provider-keys.ts'),
      clientOf(broker, issuer),
    ]);
    // Meanwhile another call may have made them.
    const made =
      keys.get(place) ??
      providerKeys({
        fetchKeys:
          issuer.jwks_uri === undefined ? provider.fetchKeys : () => fetchKeysAt(broker, issuer.jwks_uri ?? ''),
        onFailure: (error) => void provider.fault(error),
        clock: broker.clock,
      });
    keys.set(place, made);
    return made;
  };
  const issuersOf = async (organisationId: string): Promise<CallerIssuer[]> =>
    readCallerIssuers((await findOrganisation(broker.store.db, organisationId))?.caller_issuers ?? null);
  return {
    issuer: async (organisationId, issuer) => (await issuersOf(organisationId)).find((one) => one.issuer === issuer),
    verify: async (organisationId, assertion) => {
      const claimed = claimedIssuer(assertion);
      const issuer = (await issuersOf(organisationId)).find((one) => one.issuer === claimed);
      if (!issuer) return refused('The assertion is not of an issuer that the organisation trusts (caller_issuers).');
      const verified = await (await keysOf(issuer)).verify(assertion, issuer.issuer);
      if (verified.kind === 'unavailable')
        return refused('The keys of the issuer cannot be fetched just now. Try again shortly.');
      if (verified.kind === 'refused') return refused(REFUSED[verified.code]);
      return personOf(issuer, verified);
    },
  };
}

const refused = (detail: string): VerifiedAssertion => ({ ok: false, detail });

const REFUSED: Record<Extract<VerifiedToken, { kind: 'refused' }>['code'], string> = {
  invalid_token: 'The assertion cannot be verified with the keys that its issuer publishes.',
  invalid_signature: 'The signature of the assertion does not match the key that its issuer publishes.',
  token_expired: 'The assertion has expired. Send a new one.',
};

/** The client of an issuer: for its keys, and for signing in. Sends no request yet. */
export async function clientOf(
  broker: Pick<Broker, 'clock' | 'log' | 'outbound'>,
  issuer: CallerIssuer,
): Promise<ReturnType<typeof providerClient>> {
  const { providerClient: make } = await import('../auth/provider-client.ts');
  return make(broker, oidcOf(issuer), broker.outbound);
}

/** An issuer as an OpenID Connect provider, of which the broker is a public client. */
export const oidcOf = ({ issuer, client_id: clientId }: CallerIssuer) => ({
  issuer,
  clientId: clientId ?? 'none',
  clientSecret: undefined,
  scopes: 'openid',
  trustEmail: false,
  onLoopback: false,
});

async function fetchKeysAt(broker: Pick<Broker, 'outbound'>, uri: string): Promise<JSONWebKeySet> {
  const answer = await providerFetch(broker.outbound)(uri, {
    method: 'GET',
    headers: { accept: 'application/json, application/jwk-set+json' },
  });
  if (answer.status !== 200) throw new Error(`fetching its key set (JWKS) returned status ${answer.status}`);
  return (await answer.json()) as JSONWebKeySet;
}

/** `iss` before anything is verified: only to find the issuer whose keys then have to fit. */
function claimedIssuer(assertion: string): string | undefined {
  const [, payload = ''] = assertion.split('.');
  try {
    const claims: unknown = JSON.parse(decodeBase64url(payload)?.toString('utf8') ?? '');
    const issuer = typeof claims === 'object' && claims !== null && 'iss' in claims ? claims.iss : undefined;
    return typeof issuer === 'string' ? issuer : undefined;
  } catch {
    return undefined;
  }
}

function personOf(
  issuer: CallerIssuer,
  { claims, header }: Extract<VerifiedToken, { kind: 'verified' }>,
): VerifiedAssertion {
  const { algorithms } = issuer;
  if (algorithms && !algorithms.some((one) => one === header.alg))
    return refused('The assertion is signed with an algorithm that the organisation does not take of this issuer.');
  if (header.jku !== undefined || header.x5u !== undefined || header.jwk !== undefined)
    return refused('The assertion names keys of its own (jku, x5u or jwk). Leave them out.');
  const audiences = Array.isArray(claims.aud) ? claims.aud : [claims.aud];
  if (!audiences.includes(issuer.audience))
    return refused('The assertion is meant for another audience (aud) than the organisation asks for.');
  if ((claims.exp ?? Number.POSITIVE_INFINITY) - (claims.iat ?? 0) > LONGEST_SECONDS)
    return refused('The assertion lives longer than an hour (exp).');
  const subject = subjectOf(issuer, claims);
  if (subject === undefined) return refused('The assertion does not say who the person is, or not in a usable form.');
  return { ok: true, identity: { issuer: issuer.issuer, subject } };
}

/** Who a token of the issuer is about; undefined when it does not say. */
export function subjectOf({ claim = 'sub' }: CallerIssuer, claims: JWTPayload): string | undefined {
  const subject = claims[claim];
  const isUsable =
    typeof subject === 'string' &&
    subject !== '' &&
    subject.length <= MOST_SUBJECT &&
    /^[^\p{Cc}\p{Cs}]+$/u.test(subject);
  return isUsable ? subject : undefined;
}
