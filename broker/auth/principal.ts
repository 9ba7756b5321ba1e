import type { FactsRow } from '../store/facts-columns.ts';
import type { OwnerTable } from '../store/schema.ts';

/** The authenticated party. */
export type Principal = AgentPrincipal | OwnerPrincipal | LocalPrincipal;

export type AgentPrincipal = {
  kind: 'agent';
  /** The rows that authentication read anyway: the decision is made on them, without another query. */
  rows: readonly FactsRow[];
  agent: FactsRow;
  /** The client's address, as strikes are counted per. */
  source: string;
  sessionId: string | null;
  /** MCP clients: what their access token was asked for, and the consent behind it. */
  access?: { authorisationId: string; scopes: ReadonlySet<string> };
};

export type OwnerPrincipal = {
  kind: 'owner';
  owner: OwnerTable;
  organisationId: string;
  role: OwnerTable['role'];
  session: OwnerSession;
};

/** Who said that it is the owner: this broker's own issuer, or the organisation's identity provider. */
export type SignIn = 'local' | 'oidc';

/** `expiresAt`: seconds since the epoch. */
export type OwnerSession = { id: string; expiresAt: number; signIn: SignIn };

/** Whoever can read the data folder of this process: the operator's command line. */
export type LocalPrincipal = { kind: 'local' };

/** Why a bearer was not accepted: a 401. */
export type AuthRefusal = {
  kind: 'refused';
  code: 'missing_token' | 'invalid_token' | 'token_expired' | 'invalid_signature';
  detail: string;
};

/** The identity provider's keys are not here, so nothing can be said about its tokens: a 502. */
export type ProviderUnavailable = { kind: 'unavailable'; detail: string };

/**
 * The platform whose facts are asked for, '' for none; or a function that finds it out, by reading the request's body. It is
 * called at most once, and only for a token that is signed with the key of the agent that it names.
 */
export type AskedPlatform = string | (() => Promise<string>);
