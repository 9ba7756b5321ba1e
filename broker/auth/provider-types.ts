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

/**
 * Where a provider sends people back to. `own`: no other provider does. `shared`: others do, too, so that what comes there could be another's
 * (mix-up attack, RFC 9700 section 4.4); it is for providers that say in each answer who they are (RFC 9207), and an answer that does not is
 * refused there.
 */
export type RedirectUris = { own: string; shared?: string };

/** Sign-in failed. `stale`: the callback belongs to no flow of this browser, or no longer. */
export type NotSignedIn = { problem: 'stale' | 'declined' | 'failed'; detail: string };

export type ProviderSteps = {
  /** The authorization URL, which of the redirect URIs it has, and the state for the browser to keep. Default: that of owners. */
  begin(
    wish: Pick<SignInFlow, 'page' | 'organisation' | 'replaces' | 'reauthenticate'>,
    redirectUris?: RedirectUris,
  ): Promise<{ url: string; redirectUri: string; flow: SignInFlow } | NotSignedIn>;
  /**
   * Finishes with the query of the callback. `isNamed`: it has to say who answers. `subjectOnly`: nothing but the ID token counts, so the userinfo
   * endpoint is not asked. Default: the redirect URI of owners.
   */
  finish(
    query: URLSearchParams,
    flow: SignInFlow,
    at?: { redirectUri: string; isNamed: boolean; subjectOnly?: boolean },
  ): Promise<SignedIn | NotSignedIn>;
  /** Verifies a bearer with the cached keys: an ID token or JWT access token for this broker. */
  verifyBearer(token: string): Promise<VerifiedToken>;
  /** Verifies a logout token (OpenID Connect Back-Channel Logout 1.0 section 2.6). */
  verifyLogout(token: string): Promise<VerifiedToken>;
};
