import type { SessionMarks } from '../store/ended-sessions.ts';
import type { FactsRow } from '../store/facts-columns.ts';
import type { OwnerTable, PipelineTable } from '../store/tables/organisations.ts';

/** The authenticated party. */
export type Principal = AgentPrincipal | OwnerPrincipal | PipelinePrincipal | LocalPrincipal;

export type AgentPrincipal = {
  kind: 'agent';
  /** The facts that authentication has read, so that the decision needs no further query. */
  rows: readonly FactsRow[];
  agent: FactsRow;
  /** The client's address, the key for counting strikes. */
  source: string;
  sessionId: string | null;
  /** Fingerprint of the key, when the agent authenticated by a token that it signed. */
  signedWith?: string;
  /** For MCP clients: the scopes of their access token, and its authorisation. */
  access?: { authorisationId: string; scopes: ReadonlySet<string> };
  /** Set when authenticated by a static key, which is valid for this connection only. */
  staticKey?: StaticKeyUse;
  /** Set when authenticated by a token of the agent's workload, instead of one that the agent signed. */
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
 * Times in seconds since the epoch. `authTime`: when the owner last proved who they are, by a sign-in or as the identity provider states; undefined: the
 * provider did not state it. `marks`: by which the session is found to have ended.
 */
export type OwnerSession = {
  id: string;
  expiresAt: number;
  signIn: SignIn;
  authTime: number | undefined;
  marks: SessionMarks;
};

/** A pipeline, authenticated by a token of its platform. */
export type PipelinePrincipal = {
  kind: 'pipeline';
  pipeline: PipelineTable;
  organisationId: string;
  role: PipelineTable['role'];
  /** The running job, for the audit: the verified subject, and the commit and who started it where the token says so. */
  detail: string;
};

/** The operator's command line, which has read the local credential in the data folder of this process. */
export type LocalPrincipal = { kind: 'local' };

/** Why a bearer was refused; answered with 401. */
export type AuthRefusal = {
  kind: 'refused';
  code: 'missing_token' | 'invalid_token' | 'token_expired' | 'invalid_signature';
  detail: string;
};

export const refused = (code: AuthRefusal['code'], detail: string): AuthRefusal => ({ kind: 'refused', code, detail });

/** The identity provider's keys are unavailable, so its tokens cannot be verified; answered with 502. */
export type ProviderUnavailable = { kind: 'unavailable'; detail: string };

/**
 * The platform whose facts are needed, '' for none; or a function that reads it from the request's body. The function is called at most
 * once, and only for a token whose signature matches the key of the agent that it names.
 */
export type AskedPlatform = string | (() => Promise<string>);

/**
 * `(token, platform, source address)` → the agent with the facts about that platform, or a refusal. Unknown, deleted and
 * keyless agents are refused like a wrong signature, after one read and one verification, so that timing does not reveal which.
 */
export type AuthenticateAgent = (
  token: string,
  platform: AskedPlatform,
  source: string,
) => Promise<AgentPrincipal | AuthRefusal>;
