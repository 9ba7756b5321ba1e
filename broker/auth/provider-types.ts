/** Sign-in at an OpenID Connect provider, as its parts share it. */
import type { JWTPayload } from 'jose';
import type { ProviderIdentity } from '../store/owner-identities.ts';
import type { VerifiedToken } from './provider-keys.ts';
import type { SignInFlow } from './sign-in-flow.ts';

/**
 * The signed-in person. `address`: the e-mail address, verified or not, for display only. `claims`: of the ID token. `groups`: those that the provider says
 * the person is in; undefined: it says none, or nobody asked.
 */
export type SignedIn = {
  identity: ProviderIdentity;
  claims: JWTPayload;
  address: string | undefined;
  groups?: readonly string[] | undefined;
};

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
  /** Verifies a logout token (OpenID Connect Back-Channel Logout 1.0 section 2.6). */
  verifyLogout(token: string): Promise<VerifiedToken>;
};
