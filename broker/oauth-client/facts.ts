/** What is known of a connection's tokens, beside the tokens: for owners to read, and so that none goes to another server. */
import type { Instant } from '../policy/facts.ts';

export type OAuthConnectionFacts = {
  /** Who gave them: an issuer, or a token endpoint. */
  server: string;
  client_id: string;
  /** Whose account it is, as the server calls it. */
  account: string | null;
  connected_at: Instant;
  /** Id of the owner who connected. */
  connected_by: string;
  refreshed_at: Instant | null;
  expires_at: Instant | null;
  /** The server rejects the broker's client at each refresh; absent: it does not. */
  rejected?: ClientRejection;
};

/** `error`: the server's name for it (RFC 6749 section 5.2). `times`: how often it was answered, one after the other. */
export type ClientRejection = { error: string; since: Instant; times: number };

export const writeFacts = (facts: OAuthConnectionFacts): string => JSON.stringify(facts);

export const readFacts = (text: string | null): OAuthConnectionFacts | null =>
  text === null ? null : (JSON.parse(text) as OAuthConnectionFacts);
