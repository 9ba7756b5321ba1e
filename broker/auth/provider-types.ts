/** Shared types of the sign-in at an OpenID Connect provider. */
import type { JWTPayload } from 'jose';
import type { ProviderIdentity } from '../store/owner-identities.ts';
import type { VerifiedToken } from './provider-keys.ts';
import type { SignInFlow } from './sign-in-flow.ts';

/**
 * The signed-in person. `address`: the e-mail address, verified or not, for display only. `claims`: of the ID token; where one claim was needed that it
 * does not contain, also of the userinfo endpoint. `groups`: the person's groups according to the provider; undefined: the provider named none, or
 * groups are not configured.
 */
export type SignedIn = {
  identity: ProviderIdentity;
  claims: JWTPayload;
  address: string | undefined;
  groups?: readonly string[] | undefined;
};

/**
 * The redirect URIs of a provider. `own`: used by no other provider. `shared`: also used by others, so that a response there could come from another
 * provider (mix-up attack, RFC 9700 section 4.4); it is for providers that name themselves in each response (RFC 9207), and a response without the
 * issuer is refused there.
 */
export type RedirectUris = { own: string; shared?: string };

/** Sign-in failed. `stale`: the callback belongs to no current flow of this browser. */
export type NotSignedIn = { problem: 'stale' | 'declined' | 'failed'; detail: string };

export type ProviderSteps = {
  /** Returns the authorization URL, its redirect URI, and the state for the browser to keep. Default redirect URIs: those of owners. */
  begin(
    wish: Pick<SignInFlow, 'page' | 'organisation' | 'replaces' | 'reauthenticate' | 'sentHere'>,
    redirectUris?: RedirectUris,
  ): Promise<{ url: string; redirectUri: string; flow: SignInFlow } | NotSignedIn>;
  /**
   * Finishes with the query of the callback. `isNamed`: the response has to name its issuer. `claim`: the only claim that is needed, so the userinfo
   * endpoint is called only where the ID token does not contain it. Default: the redirect URI of owners, and their claims.
   */
  finish(
    query: URLSearchParams,
    flow: SignInFlow,
    at?: { redirectUri: string; isNamed: boolean; claim?: string },
  ): Promise<SignedIn | NotSignedIn>;
  /** Verifies a bearer with the cached keys: an ID token or JWT access token for this broker. */
  verifyBearer(token: string): Promise<VerifiedToken>;
  /** Verifies a logout token (OpenID Connect Back-Channel Logout 1.0 section 2.6). */
  verifyLogout(token: string): Promise<VerifiedToken>;
};
