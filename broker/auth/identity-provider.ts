/** Sign-in of owners at an OpenID Connect provider (specification, Authentication 5). */
import type { Broker } from '../broker.ts';
import type { ProviderIdentity } from '../store/owner-identities.ts';
import type { VerifiedToken } from './provider-keys.ts';
import type { SignInFlow } from './sign-in-flow.ts';

/** The signed-in person. `address`: the e-mail address, verified or not, for display only. */
export type SignedIn = { identity: ProviderIdentity; address: string | undefined };

/** Sign-in failed. `stale`: the callback belongs to no flow of this browser, or no longer. */
export type NotSignedIn = { problem: 'stale' | 'declined' | 'failed'; detail: string };

export type ProviderSteps = {
  /** The authorization URL, and the state for the browser to keep. */
  begin(
    wish: Pick<SignInFlow, 'page' | 'organisation' | 'replaces'>,
  ): Promise<{ url: string; flow: SignInFlow } | NotSignedIn>;
  /** Finishes with the query of the callback. */
  finish(query: URLSearchParams, flow: SignInFlow): Promise<SignedIn | NotSignedIn>;
  /** Verifies a bearer with the cached keys: an ID token or JWT access token for this broker. */
  verifyBearer(token: string): Promise<VerifiedToken>;
};

export type IdentityProvider = ProviderSteps & {
  issuer: string;
  /** For display. */
  host: string;
};

/**
 * Makes it; undefined when none is configured. Sends no request yet, so that the provider may be down, and loads the
 * libraries lazily, because a broker whose owners sign in by links should not pay for them.
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
