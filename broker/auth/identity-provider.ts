/** Any OpenID Connect provider as the place where owners sign in (specification, Authentication 5). */
import type { Broker } from '../broker.ts';
import type { ProviderIdentity } from '../store/owner-identities.ts';
import type { VerifiedToken } from './provider-keys.ts';
import type { SignInFlow } from './sign-in-flow.ts';

/** Whom the provider signed in. `address`: what it calls the person, verified or not; for people to read, not to act on. */
export type SignedIn = { identity: ProviderIdentity; address: string | undefined };

/** Nobody was signed in. `stale`: this answer is not, or no longer, one to what the browser began. */
export type NotSignedIn = { problem: 'stale' | 'declined' | 'failed'; detail: string };

export type ProviderSteps = {
  /** Where to send the browser, and what it has to bring back. */
  begin(
    wish: Pick<SignInFlow, 'page' | 'organisation' | 'replaces'>,
  ): Promise<{ url: string; flow: SignInFlow } | NotSignedIn>;
  /** Takes the provider's answer, as it stands in the query of the callback. */
  finish(query: URLSearchParams, flow: SignInFlow): Promise<SignedIn | NotSignedIn>;
  /** Verifies a bearer with the keys that are here: an ID token or JWT access token that was made for this broker. */
  verifyBearer(token: string): Promise<VerifiedToken>;
};

export type IdentityProvider = ProviderSteps & {
  issuer: string;
  /** For people to read. */
  host: string;
};

/**
 * Makes it; undefined when none is configured. Asks the provider for nothing yet, so that it may be down; and loads the
 * libraries with the first use, because a broker whose owners sign in by links should not pay for them.
 */
export function makeIdentityProvider(broker: Broker): IdentityProvider | undefined {
  const { oidc } = broker.config;
  const outbound = broker.providerOutbound;
  if (!oidc || !outbound) return undefined;
  let loaded: Promise<ProviderSteps> | undefined;
  const load = () => {
    loaded ??= import('./provider-steps.ts').then(({ providerSteps }) => providerSteps(broker, oidc, outbound));
    return loaded;
  };
  return {
    issuer: oidc.issuer,
    host: new URL(oidc.issuer).host,
    begin: async (wish) => (await load()).begin(wish),
    finish: async (query, flow) => (await load()).finish(query, flow),
    verifyBearer: async (token) => (await load()).verifyBearer(token),
  };
}
