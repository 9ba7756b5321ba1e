import type { FactsRow } from '../store/facts-columns.ts';
import type { OwnerTable, PipelineTable } from '../store/tables/organisations.ts';

/** The authenticated party. */
export type Principal = AgentPrincipal | OwnerPrincipal | PipelinePrincipal | LocalPrincipal;

export type AgentPrincipal = {
  kind: 'agent';
  /** The facts that authentication has read, so that the decision needs no other query. */
  rows: readonly FactsRow[];
  agent: FactsRow;
  /** The client's address, by which strikes are counted. */
  source: string;
  sessionId: string | null;
  /** Authenticated by a token that it signed: the fingerprint of its key at that moment. */
  signedWith?: string;
  /** MCP clients: the scopes of their access token, and its authorisation. */
  access?: { authorisationId: string; scopes: ReadonlySet<string> };
  /** Authenticated by a static key, which is good for this connection only. */
  staticKey?: StaticKeyUse;
  /** Authenticated by a token of its workload, and not by one that it signed. */
  workload?: { id: string };
};

/** `connectionLabel`: null when the connection was removed. */
export type StaticKeyUse = { id: string; connectionId: string; connectionLabel: string | null };

export type OwnerPrincipal = {
  kind: 'owner';
  owner: OwnerTable;
  organisationId: string;
  role: OwnerTable['role'];
  session: OwnerSession;
};

/** Who authenticated the owner: this broker's own issuer, or the organisation's identity provider. */
export type SignIn = 'local' | 'oidc';

/**
 * In seconds since the epoch. `authTime`: when the owner last proved who it is, by a sign-in or as the identity provider says; undefined: the provider
 * did not say.
 */
export type OwnerSession = { id: string; expiresAt: number; signIn: SignIn; authTime: number | undefined };

/** A pipeline, by a token of its platform. */
export type PipelinePrincipal = {
  kind: 'pipeline';
  pipeline: PipelineTable;
  organisationId: string;
  role: PipelineTable['role'];
  /** What runs, for the record: the verified subject, and the commit and whoever started it where the token says so. */
  detail: string;
};

/** The operator's command line, which can read the data folder of this process. */
export type LocalPrincipal = { kind: 'local' };

/** Why a bearer was refused: a 401. */
export type AuthRefusal = {
  kind: 'refused';
  code: 'missing_token' | 'invalid_token' | 'token_expired' | 'invalid_signature';
  detail: string;
};

/** The identity provider's keys are unavailable, so its tokens cannot be verified: a 502. */
export type ProviderUnavailable = { kind: 'unavailable'; detail: string };

/**
 * The platform whose facts are needed, '' for none; or a function that reads it from the request's body. It is called at most
 * once, and only for a token whose signature matches the key of the agent that it names.
 */
export type AskedPlatform = string | (() => Promise<string>);
