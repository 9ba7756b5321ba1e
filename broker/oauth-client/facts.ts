/** Metadata of a connection's tokens: for display, and to send tokens to no other server than their issuer. */
import type { Instant } from '../policy/facts.ts';

export type OAuthConnectionFacts = {
  /** Who issued them: an issuer, or a token endpoint. */
  server: string;
  client_id: string;
  /** The account's name at the server. */
  account: string | null;
  connected_at: Instant;
  /** Id of the owner who connected. */
  connected_by: string;
  refreshed_at: Instant | null;
  expires_at: Instant | null;
  /** Present while the server rejects the broker's client at each refresh. */
  rejected?: ClientRejection;
};

/** `error`: the OAuth error code (RFC 6749 section 5.2). `times`: consecutive rejections. */
export type ClientRejection = { error: string; since: Instant; times: number };

export const writeFacts = (facts: OAuthConnectionFacts): string => JSON.stringify(facts);

export const readFacts = (text: string | null): OAuthConnectionFacts | null =>
  text === null ? null : (JSON.parse(text) as OAuthConnectionFacts);
