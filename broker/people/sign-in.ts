/**
 * Sign-in of a person at the issuer of their assertion before they consent, so that only the intended person can complete the consent.
 *
 * Organisations configure issuers, and do not trust each other: one organisation's issuer could redirect people to the issuer of another,
 * and obtain a code of that issuer (mix-up attack, RFC 9700 section 4.4). So each issuer of each organisation has a redirect URI of its own,
 * and a callback is accepted only at the redirect URI of its sign-in. Issuers that name themselves in each response (RFC 9207) keep the
 * shared one of earlier releases, where a response without the right name is refused.
 */
import { z } from 'zod';
import { asProvider } from '../auth/issuer-keys.ts';
import type { ProviderSteps } from '../auth/provider-types.ts';
import type { Broker } from '../broker.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import { subjectOf } from './assertions.ts';
import { type CallerIssuer, signInScope } from './caller-issuer.ts';
import type { Identity } from './person-hash.ts';

/** The shared redirect URI, for issuers that name themselves in their responses. */
export const SIGNED_IN_PATH = '/me/consent/signed-in';
/**
 * The path of issuers' own redirect URIs, with one more segment. Not below the shared path: authorization servers that compare prefixes would
 * accept any of them in its place.
 */
export const OWN_SIGNED_IN_PATH = '/me/signed-in';

/** An issuer, and the organisation that trusts it. */
export type SignInAt = { organisationId: string; issuer: CallerIssuer };

/** Returns an issuer's own redirect URI in an organisation: a hash of both, which needs no secret. */
export const ownSignInUri = (baseUrl: string, organisationId: string, issuer: string): string =>
  `${baseUrl}${OWN_SIGNED_IN_PATH}/${sha256Hex(JSON.stringify([organisationId, issuer])).slice(0, 32)}`;

/** The state stored until the callback. `redirectUri`: the issuer's own; absent for the shared one. */
export const SignInState = z.strictObject({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  redirectUri: z.string().optional(),
});
export type SignInState = z.infer<typeof SignInState>;

/** The callback: its path and query. */
export type SignInAnswer = { path: string; query: URLSearchParams };

/** `problem`: a sentence for the person. */
export type NotIdentified = { problem: string };

export type SignIns = {
  begin(at: SignInAt): Promise<{ url: string; kept: SignInState } | NotIdentified>;
  finish(at: SignInAt, answer: SignInAnswer, kept: SignInState): Promise<Identity | NotIdentified>;
};

const CACHE_SIZE = 100;

/** Returns the sign-ins. The libraries are loaded with the first one. */
export function personSignIns(broker: Pick<Broker, 'baseUrl' | 'clock' | 'log' | 'outbound'>): SignIns {
  const shared = broker.baseUrl + SIGNED_IN_PATH;
  const made = recentlyUsed<Promise<ProviderSteps>>(CACHE_SIZE);
  const stepsOf = (issuer: CallerIssuer): Promise<ProviderSteps> => {
    const scopes = signInScope(issuer);
    const key = JSON.stringify([issuer.issuer, issuer.client_id ?? null, scopes]);
    const found = made.get(key);
    if (found) return found;
    const steps = import('../auth/provider-steps.ts').then(({ providerSteps }) =>
      providerSteps(broker, { ...asProvider(issuer), scopes }, broker.outbound),
    );
    made.set(key, steps);
    return steps;
  };
  return {
    begin: async ({ organisationId, issuer }) => {
      if (issuer.client_id === undefined)
        return {
          problem: `People cannot sign in at ${new URL(issuer.issuer).host} from this broker yet: an owner has to set client_id for it in caller_issuers.`,
        };
      const own = ownSignInUri(broker.baseUrl, organisationId, issuer.issuer);
      const steps = await stepsOf(issuer);
      const begun = await steps.begin({ page: '', organisation: null, replaces: null }, { own, shared });
      if ('problem' in begun) return { problem: begun.detail };
      const { state, nonce, verifier } = begun.flow;
      const { url, redirectUri } = begun;
      return { url, kept: { state, nonce, verifier, ...(redirectUri !== shared && { redirectUri }) } };
    },
    finish: async ({ issuer }, { path, query }, { redirectUri = shared, ...kept }) => {
      const { host } = new URL(issuer.issuer);
      if (redirectUri !== broker.baseUrl + path)
        return { problem: `This response is not from ${host}, where this browser started to sign in. Start again.` };
      const flow = { ...kept, page: '', organisation: null, replaces: null };
      const at = { redirectUri, isNamed: redirectUri === shared, claim: issuer.claim ?? 'sub' };
      const signedIn = await (await stepsOf(issuer)).finish(query, flow, at);
      if ('problem' in signedIn) return { problem: signedIn.detail };
      const subject = subjectOf(issuer, signedIn.claims);
      if (subject === undefined) return { problem: `${host} does not say who you are.` };
      return { issuer: issuer.issuer, subject };
    },
  };
}
