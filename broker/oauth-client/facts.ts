/** Metadata of a connection's tokens: for display, and to send tokens to no other server than their issuer. */
import { z } from 'zod';
import { readStored } from '../store/stored-json.ts';
import { FailingTokens } from '../token-source/failing-tokens.ts';

/** `error`: the OAuth error code (RFC 6749 section 5.2). `times`: consecutive rejections. */
const ClientRejection = z.object({ error: z.string(), since: z.number(), times: z.number() });
export type ClientRejection = z.output<typeof ClientRejection>;

/** Times in milliseconds since the epoch. */
const OAuthConnectionFacts = z.object({
  /** Issuer of the tokens: an issuer URL, or a token endpoint. */
  server: z.string(),
  client_id: z.string(),
  /** The account's name at the server. */
  account: z.string().nullable(),
  connected_at: z.number(),
  /** Id of the owner who connected. */
  connected_by: z.string(),
  refreshed_at: z.number().nullable(),
  expires_at: z.number().nullable(),
  /** Present while the server rejects the broker's client at each refresh. */
  rejected: ClientRejection.exactOptional(),
  /** Present while each refresh fails and calls need the new token. */
  failing: FailingTokens.exactOptional(),
  /** Scopes that were requested for the tokens, possibly more than were granted. */
  requested: z.array(z.string()).exactOptional(),
  /** Scopes that the platform required for calls and that the tokens do not have. */
  wanted: z.array(z.string()).exactOptional(),
});
export type OAuthConnectionFacts = z.output<typeof OAuthConnectionFacts>;

export const writeFacts = (facts: OAuthConnectionFacts): string => JSON.stringify(facts);

/** Parses the stored column. Null: the credential is not from an OAuth server. Throws Error when the column was altered. */
export const readFacts = (text: string | null): OAuthConnectionFacts | null =>
  text === null ? null : readStored(OAuthConnectionFacts, text, 'facts of OAuth tokens');

/** Appended to an address that the server reports as not verified (OpenID Connect Core section 5.1). */
export const UNVERIFIED = ' (address not verified)';
const bare = (account: string): string =>
  account.endsWith(UNVERIFIED) ? account.slice(0, -UNVERIFIED.length) : account;

/**
 * Whether tokens of one account replaced those of another, by the names that the server gave. An account without a name (null) counts as
 * the same: at some servers, revoking a token of an account ends its other tokens, too.
 */
export const isOtherAccount = (before: string | null, now: string | null): boolean =>
  before !== null && now !== null && bare(before) !== bare(now);
