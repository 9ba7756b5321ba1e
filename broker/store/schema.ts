/**
 * The tables, as Kysely sees them. Ids and states are text, moments are milliseconds since the epoch, JSON is text,
 * secrets and raw bodies are bytes, truth is 0 or 1: the subset that SQLite and PostgreSQL share.
 */
import type { ColumnType } from 'kysely';
import type { AgentStatus, HaltCause } from '../policy/facts.ts';
import type { ToolEffect } from '../policy/tool.ts';
import type { AuditTable } from './audit-columns.ts';

export type Bit = 0 | 1;

export type OrganisationTable = {
  id: string;
  name: string;
  publish_identity_documents: Bit;
  /** Version of the guardrails in force; 0 when there are none. */
  guardrails_version: number;
  /** How long a held call waits for its decision. */
  approval_ttl_ms: number;
  created_at: number;
  /** Whether a passkey decides only when its authenticator verified the person, by finger, face or PIN. */
  require_user_verification: Bit;
  /** JSON: an AutoSuspend; null: agents are refused as often as they ask. */
  auto_suspend: string | null;
};

export type OwnerTable = {
  organisation_id: string;
  id: string;
  email: string;
  role: 'admin' | 'approver' | 'viewer';
  /** `first_start`: made by the first start, kept beside the ones that governance.yaml names. */
  origin: 'first_start' | 'governance' | 'added';
  created_at: number;
  /** Issuer and `sub` of the identity provider, a space between them, from the first sign-in on. */
  oidc_subject: string | null;
};

export type AgentTable = {
  organisation_id: string;
  id: string;
  agent_id: string;
  name: string;
  owner_id: string;
  agent_type: 'key' | 'child' | 'mcp_client' | null;
  status: AgentStatus;
  status_since: number | null;
  status_cause: HaltCause | null;
  status_detail: string | null;
  policy_id: string | null;
  /** Who made it: `apply` removes only what a governance file made. */
  origin: 'governance' | 'owner' | 'registration';
  parent_id: string | null;
  public_key_pem: string | null;
  /** RFC 7638 thumbprint of its key; of a child the hash of its token's `jti`. */
  key_fingerprint: string | null;
  created_at: number;
  expires_at: number | null;
};

/** Of the children of an agent those that are neither revoked nor, as far as anybody noticed, over. */
type CountedChildren = { live_children: ColumnType<number, number | undefined, number> };

export type PlatformTable = {
  organisation_id: string;
  platform_id: string;
  version: number;
  suspended: Bit;
  created_at: number;
};

/** Manifests never change once written: a version is a cache key. */
export type PlatformVersionTable = {
  organisation_id: string;
  platform_id: string;
  version: number;
  manifest: string;
  created_at: number;
};

export type ConnectionTable = {
  organisation_id: string;
  id: string;
  platform_id: string;
  label: string;
  is_default: Bit;
  status: 'active' | 'reauth_needed';
  credential: Uint8Array | null;
  /** Where the secret comes from, as governance.yaml names it: never the secret. */
  secret_reference: string | null;
  /** JSON: the OAuth scopes that the upstream granted; null when it has none, or does not say. */
  upstream_scopes: string | null;
  revision: number;
  created_at: number;
  /** Sealed; null when the credential came from no OAuth server, or that gave none. */
  refresh_token: Uint8Array | null;
  /** JSON: an OAuthFacts; null when the credential came from no OAuth server. */
  oauth: string | null;
  /** Which tokens these are: another one with each new pair. */
  token_id: string | null;
  /** Which attempt at a refresh is under way, and until when nobody else begins one. */
  refresh_claim: string | null;
  refresh_claim_until: number | null;
};

type TokenColumns = 'refresh_token' | 'oauth' | 'token_id' | 'refresh_claim' | 'refresh_claim_until';
/** A connection as it is made: tokens come later, if at all. */
export type NewConnection = Omit<ConnectionTable, TokenColumns>;

export type GrantTable = {
  organisation_id: string;
  id: string;
  agent_id: string;
  platform_id: string;
  connection_id: string | null;
  scopes: string;
  constraints: string;
  require_approval: Bit;
  expires_at: number | null;
  /** The words of governance.yaml for the expiry (`30d`), so that applying twice changes nothing. */
  expires_text: string | null;
  created_at: number;
};

export type PolicyTable = { organisation_id: string; id: string; name: string; version: number; created_at: number };

export type PolicyVersionTable = {
  organisation_id: string;
  policy_id: string;
  version: number;
  rules: string;
  created_at: number;
};

export type GuardrailsVersionTable = { organisation_id: string; version: number; rules: string; created_at: number };

/** Another one, set by the database itself, with whatever facts.ts reads of an organisation, in the transaction that changes it. */
export type FactVersionTable = { organisation_id: string; version: string };

/** The same with whatever a governance file speaks of. */
export type GovernanceVersionTable = { organisation_id: string; version: string };

/** A row exists only while there are recent strikes; `open_until` is null while the breaker is closed. */
export type BreakerTable = {
  organisation_id: string;
  agent_id: string;
  cause: 'breaker_auth_failure' | 'breaker_api_error' | 'breaker_upstream_failure';
  /** Source address, platform id, or empty: what the strikes are counted per. */
  key: string;
  strikes: number;
  window_start: number;
  opened_at: number | null;
  open_until: number | null;
  /** When a half-open breaker gave its one trial call away. */
  trial_at: number | null;
};

export type ApprovalTable = {
  organisation_id: string;
  id: string;
  agent_id: string;
  audit_id: string;
  status: 'pending' | 'approved' | 'denied' | 'expired';
  platform_id: string;
  scope: string;
  method: string;
  path: string;
  /** SHA-256 of the canonical form of the exact request. */
  request_hash: string;
  /** Everything that the replay needs, sealed. */
  action: Uint8Array;
  created_at: number;
  expires_at: number;
  decided_at: number | null;
  /** The owner's uuid. */
  decided_by: string | null;
  decided_how: 'console' | 'api' | 'passkey' | null;
  /** What the owner says to the agent. */
  note: string | null;
  decision_audit_id: string | null;
  /**
   * How far the one replay of an approved call came. `claimed`: nothing was sent yet; `intent`: it may be under way;
   * `unknown`: it may have been made, and nobody knows.
   */
  exec_state: 'none' | 'claimed' | 'intent' | 'done' | 'failed' | 'unknown';
  /** The process that replays it. */
  lease_owner: string | null;
  /** One more with each process that takes the claim: what an earlier one still writes is refused. */
  fence: number;
  executed_at: number | null;
  execution_error: string | null;
  /** JSON text `{status, data}`, sealed. */
  result: Uint8Array | null;
  /** Status, type and size of the result: never content. */
  result_summary: string | null;
  replay_audit_id: string | null;
  /** JSON: the passkey that decided, whether its user was verified, what its counter said. */
  decided_with: string | null;
};

/** Columns that a new held call leaves to the database. */
type DefaultedApprovalColumns =
  | 'decided_at'
  | 'decided_by'
  | 'decided_how'
  | 'note'
  | 'decision_audit_id'
  | 'exec_state'
  | 'lease_owner'
  | 'fence'
  | 'executed_at'
  | 'execution_error'
  | 'result'
  | 'result_summary'
  | 'replay_audit_id'
  | 'decided_with';

export type NewOrganisation = Omit<OrganisationTable, 'require_user_verification' | 'auto_suspend'>;
export type NewOwner = Omit<OwnerTable, 'oidc_subject'>;

/** A new held call. */
export type NewApproval = Omit<ApprovalTable, DefaultedApprovalColumns>;

type WithDefaults<Table, Column extends keyof Table> = Omit<Table, Column> & {
  [Name in Column]: ColumnType<Table[Name], Table[Name] | undefined, Table[Name]>;
};

/** One enrolled authenticator of an owner (specification, Passkey credential). */
export type PasskeyTable = {
  organisation_id: string;
  id: string;
  owner_id: string;
  /** In base64url, unique in the whole store. */
  credential_id: string;
  /** COSE key. */
  public_key: Uint8Array;
  counter: number;
  /** JSON: a list of WebAuthn's transports. */
  transports: string;
  device_name: string;
  /** The authenticator's model id. */
  aaguid: string;
  /** Whether it may be copied to other devices; such ones keep no counter. */
  synced: Bit;
  /**
   * `disabled`: its counter did not go up, so that it may have been cloned. `removed`: it was disabled, and its owner does
   * not want to see it any more; it is kept so that nobody enrols it again.
   */
  status: 'active' | 'disabled' | 'removed';
  created_at: number;
  last_used_at: number | null;
};

export type AccessRequestTable = {
  organisation_id: string;
  id: string;
  /** What the agent polls with, beside its own authentication. */
  token: string;
  agent_id: string;
  platform_id: string;
  /** Empty when none was named. */
  scope: string;
  reason_code: 'not_connected' | 'not_granted' | 'grant_expired' | 'needs_consent' | 'scope_denied';
  /** The agent's own words. */
  reason: string | null;
  status: 'pending' | 'approved' | 'denied' | 'expired';
  created_at: number;
  expires_at: number;
  decided_at: number | null;
  decided_by: string | null;
  /** What the owner says to the agent. */
  note: string | null;
  /** JSON: the scopes that the approval granted. */
  granted: string | null;
  decision_audit_id: string | null;
};

/** What a manifest names and does not hold: `client_id`, `client_secret`. */
export type PlatformSecretTable = {
  organisation_id: string;
  id: string;
  platform_id: string;
  name: string;
  /** Sealed. */
  value: Uint8Array;
  created_at: number;
};

/** A person on the way to an OAuth server and back. */
export type OAuthFlowTable = {
  /** SHA-256 of `state`. */
  state_hash: string;
  organisation_id: string;
  id: string;
  connection_id: string;
  owner_id: string;
  /** Of the browser that began it; null where a program did. */
  session_id: string | null;
  /** Sealed JSON. */
  flow: Uint8Array;
  created_at: number;
  expires_at: number;
};

/** Owner sessions that were signed out before they ended by themselves. */
/** A passkey challenge that enrolled. `challenge_hash`: SHA-256 of its base64url, in hexadecimal. */
export type UsedChallengeTable = { challenge_hash: string; expires_at: number };

export type EndedSessionTable = { organisation_id: string; session_id: string; expires_at: number };

export type IdempotencyTable = {
  organisation_id: string;
  agent_id: string;
  /** SHA-256 of the client's key. */
  key_hash: string;
  request_hash: string;
  audit_id: string;
  status: number | null;
  answer: Uint8Array | null;
  created_at: number;
  expires_at: number;
};

/** Bytes of the responses stored for an agent and its children that expire in this hour (since 1970). `agent_id`: the parent's. */
export type StoredResponsesTable = { organisation_id: string; agent_id: string; hour: number; bytes: number };

export type OneTimeTokenTable = {
  organisation_id: string;
  token_hash: string;
  kind: 'bootstrap' | 'sign_in';
  /** The agent's uuid or the owner's uuid. */
  subject: string;
  /** Of a bootstrap token: it may replace the key that its agent has. */
  rotates: Bit;
  created_at: number;
  expires_at: number;
  used_at: number | null;
};

/** An agent that asked to be one (specification, Registration). */
export type RegistrationTable = {
  token_hash: string;
  /** Null: nobody is known by this owner_id, and the row only keeps anybody from learning that. */
  organisation_id: string | null;
  id: string;
  owner_id: string;
  /** `client_id`: the agent id that an approval makes an agent of. */
  agent_id: string;
  agent_name: string;
  agent_description: string | null;
  /** JSON: a list of ScopesOn. */
  requested_scopes: string;
  /** The client's address, for whoever decides. */
  source: string;
  status: 'pending' | 'approved' | 'rejected' | 'expired';
  created_at: number;
  expires_at: number;
  decided_at: number | null;
  decided_by: string | null;
  decision_audit_id: string | null;
  /** JSON: a list of ScopesOn. */
  granted: string | null;
  /** PKCS#8 PEM, sealed; only between the approval and its collection. */
  private_key: Uint8Array | null;
  claim_until: number | null;
  claimed_at: number | null;
};

/** Scopes on a platform, as a registration asks for them. */
export type ScopesOn = { platformId: string; scopes: string[] };

/** A secret with which an agent of this name brings its own key. */
export type InviteTable = {
  organisation_id: string;
  id: string;
  token_hash: string;
  agent_name: string;
  policy_id: string | null;
  /** JSON: a list of ScopesOn. */
  grants: string;
  /** Who invited, and answers for the agent. */
  owner_id: string;
  created_at: number;
  expires_at: number;
  claimed_at: number | null;
  /** The agent's uuid, once there is one. */
  agent_id: string | null;
};

/** What secrets are sealed to before they come here: the broker's, not an organisation's. One of them is in force. */
export type SecretKeyTable = {
  kid: string;
  public_jwk: string;
  /** PKCS#8 DER, sealed; gone a while after the key was replaced. */
  private_key: Uint8Array | null;
  created_at: number;
  replaced_at: number | null;
};

/** With this, whoever has it lets an agent have a secret for a platform, once, and nothing else. */
export type SecretAuthorizationTable = {
  organisation_id: string;
  id: string;
  token_hash: string;
  /** The agent's uuid. */
  agent_id: string;
  platform_id: string;
  /** Of the connection that it becomes. */
  label: string;
  /** JSON: of the grant that it makes; null: the grant that is there then uses the secret. */
  scopes: string | null;
  /** Who authorised it. */
  owner_id: string;
  created_at: number;
  expires_at: number;
  used_at: number | null;
  /** What it became. */
  connection_id: string | null;
};

/** A key that an agent had until another was bound: it does not come back. */
export type FormerKeyTable = { organisation_id: string; fingerprint: string; agent_id: string; replaced_at: number };

/** How often an agent and its children were refused since `window_start`; only where their organisation wants to know. */
export type RefusalCountTable = { organisation_id: string; agent_id: string; refusals: number; window_start: number };

/** What the authorization server of remote MCP clients remembers: in its own words, by kind. */
export type OAuthRecordTable = {
  kind: string;
  /** Of a client its id; of everything that can be redeemed the SHA-256 of what redeems it. */
  id: string;
  /** Codes and refresh tokens: the authorisation that they are of. */
  authorisation_id: string | null;
  /** JSON text, without what stands for `id`. */
  payload: string;
  created_at: number;
  expires_at: number | null;
  used_at: number | null;
  /** Of a client the network that registered it, as `siteOf` names it; otherwise null. */
  source: string | null;
};

/** An owner's consent: an MCP client may act as this agent, until the authorisation ends. */
export type McpAuthorisationTable = {
  organisation_id: string;
  id: string;
  /** The agent's uuid. */
  agent_id: string;
  /** Who consented. */
  owner_id: string;
  client_id: string;
  /** As the client calls itself. */
  client_name: string;
  /** Where its code was sent. */
  redirect_host: string;
  scope: string;
  created_at: number;
  expires_at: number;
  ended_at: number | null;
  /** `reuse`: one of its refresh tokens came twice, so that somebody else may have it. */
  ended_because: 'owner' | 'client' | 'reuse' | null;
};

/** A call of an MCP client whose answer nobody has yet. */
export type McpRepeatTable = {
  organisation_id: string;
  agent_id: string;
  /** SHA-256 of everything that makes the call what it is. */
  hash: string;
  /** Its Idempotency-Key. */
  key: string;
  /** The reason that it was first made with. */
  reason: string | null;
  /** Set once it is held. */
  approval_id: string | null;
  expires_at: number;
};

/** Keys of the broker itself, not of an organisation. */
export type SigningKeyTable = {
  kid: string;
  use: 'evidence' | 'issuing' | 'root' | 'session';
  public_jwk: string;
  private_key: Uint8Array | null;
  created_at: number;
  activates_at: number;
  retired_at: number | null;
};

/** What agents report of answers that they did not expect. */
export type DiagnosticTable = {
  organisation_id: string;
  id: string;
  agent_id: string;
  severity: 'info' | 'warning' | 'error';
  message: string;
  code: string | null;
  platform: string | null;
  endpoint: string | null;
  correlation_id: string | null;
  /** JSON text. */
  context: string | null;
  received_at: number;
};

/** One row a fact about the store itself: master key check values, sandbox port. */
export type MetaTable = { name: string; value: string };

/** Running processes, so that an intent of a dead one can be told from an intent of a slow one. */
/** `member`: of the run (store/instances.ts); 0 while a process that started has not found out whether another lives. */
export type InstanceTable = { id: string; started_at: number; seen_at: number; member: Bit };

/** A tool of an MCP server: as an owner, or the server's first list, had it accepted, and as it was seen last. */
export type McpToolTable = {
  organisation_id: string;
  platform_id: string;
  /** The server's address. */
  server: string;
  name: string;
  /** Canonical JSON of the definition; null while nobody has accepted it. */
  accepted: string | null;
  accepted_hash: string | null;
  accepted_at: number | null;
  /** The owner's uuid; null: it was in the first list that the server gave. */
  accepted_by: string | null;
  offered: string;
  offered_hash: string;
  offered_at: number;
  effect: ToolEffect;
  /** The owner's uuid; null: it is what the accepted definition says of itself. */
  effect_by: string | null;
};

export type Schema = {
  organisations: WithDefaults<OrganisationTable, 'require_user_verification' | 'auto_suspend'>;
  owners: WithDefaults<OwnerTable, 'oidc_subject'>;
  agents: AgentTable & CountedChildren;
  platforms: PlatformTable;
  platform_versions: PlatformVersionTable;
  connections: WithDefaults<ConnectionTable, TokenColumns>;
  grants: GrantTable;
  policies: PolicyTable;
  policy_versions: PolicyVersionTable;
  guardrails_versions: GuardrailsVersionTable;
  breakers: BreakerTable;
  fact_versions: FactVersionTable;
  governance_versions: GovernanceVersionTable;
  audit_rows: AuditTable;
  approvals: WithDefaults<ApprovalTable, DefaultedApprovalColumns>;
  passkeys: PasskeyTable;
  access_requests: AccessRequestTable;
  platform_secrets: PlatformSecretTable;
  oauth_flows: OAuthFlowTable;
  ended_sessions: EndedSessionTable;
  used_challenges: UsedChallengeTable;
  idempotency_keys: IdempotencyTable;
  stored_responses: StoredResponsesTable;
  one_time_tokens: WithDefaults<OneTimeTokenTable, 'rotates'>;
  registrations: WithDefaults<
    RegistrationTable,
    'decided_at' | 'decided_by' | 'decision_audit_id' | 'granted' | 'private_key' | 'claim_until' | 'claimed_at'
  >;
  invites: InviteTable;
  secret_keys: SecretKeyTable;
  secret_authorizations: SecretAuthorizationTable;
  former_keys: FormerKeyTable;
  refusal_counts: RefusalCountTable;
  oauth_records: OAuthRecordTable;
  mcp_authorisations: McpAuthorisationTable;
  mcp_repeats: McpRepeatTable;
  tools: McpToolTable;
  signing_keys: SigningKeyTable;
  diagnostics: DiagnosticTable;
  meta: MetaTable;
  instances: WithDefaults<InstanceTable, 'member'>;
};
