/**
 * Table types for Kysely. Ids and states are text, times are milliseconds since the epoch, JSON is text, secrets and raw bodies are
 * bytes, booleans are 0 or 1: the common subset of SQLite and PostgreSQL.
 */

import type { ColumnType } from 'kysely';
import type { DeedKind } from '../policy/call-ask.ts';
import type { AgentStatus, HaltCause } from '../policy/facts.ts';
import type { PasskeyDeciders } from '../policy/passkey-deciders.ts';
import type { RetainedKind } from '../policy/retention.ts';
import type { ToolEffect } from '../policy/tool.ts';
import type { AuditTable } from './audit-columns.ts';

export type Bit = 0 | 1;

export type OrganisationTable = {
  id: string;
  name: string;
  publish_identity_documents: Bit;
  /** Current version of the guardrails; 0 when there are none. */
  guardrails_version: number;
  /** Lifetime of a held call. */
  approval_ttl_ms: number;
  created_at: number;
  /** Whether deciding by passkey requires user verification (biometrics or PIN). */
  require_user_verification: Bit;
  /** JSON: an AutoSuspend; null: no auto-suspension. */
  auto_suspend: string | null;
  /** JSON: a list of CallerIssuer; null: none. */
  caller_issuers: string | null;
  /** JSON: an AgentsStopped; null: agents are not stopped as a whole. */
  agents_stopped: string | null;
  /** JSON: a StoreRestored; null: no restored store waits for a review. */
  restored: string | null;
  /** JSON: a Retention; null: everything is kept. */
  retention: string | null;
  /** Who decides by passkey without a session. */
  passkey_deciders: PasskeyDeciders;
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
  /** When a session was last made by a sign-in link, a passkey or the identity provider. */
  last_sign_in_at: number | null;
};

/** An apply of a governance file. */
export type GovernanceApplyTable = {
  organisation_id: string;
  /** Of the audit row `governance_applied`. */
  id: string;
  made_by: string;
  how: string;
  detail: string | null;
  change_count: number;
  /** JSON: the first of them. */
  changes: string;
  /** What was in force before it as a file, in gzip. */
  file_before: Uint8Array | null;
  created_at: number;
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
  /** Uuids, a space between them: its tokens may name one of these instead. */
  former_owners: string | null;
  /** JSON: a list in the order of the alphabet; null: none. */
  labels: string | null;
};

/** Number of an agent's children that are not revoked and not recorded as expired. */
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
  /** What the manifest of a built-in platform was made from, as JSON; null: it is one's own, or of an earlier release. */
  entry: string | null;
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
  /** Sealed; null when there is none. */
  refresh_token: Uint8Array | null;
  /** JSON: an OAuthFacts; null when the credential is not from an OAuth server. */
  oauth: string | null;
  /** Version of the tokens: changes with each new pair. */
  token_id: string | null;
  /** The current refresh claim, and its expiry (lease). */
  refresh_claim: string | null;
  refresh_claim_until: number | null;
  /** What the last test found, of the credential with this revision; all null: none was tested. */
  tested_at: number | null;
  tested_revision: number | null;
  tested_ok: Bit | null;
  tested_status: number | null;
  tested_detail: string | null;
  /** How long a streamed answer may be silent; null: as long as any. */
  idle_ms: number | null;
  /** How long a request of an unmodified client waits for a person, if it does not say; null: as long as any. */
  wait_ms: number | null;
};

type TokenColumns = 'refresh_token' | 'oauth' | 'token_id' | 'refresh_claim' | 'refresh_claim_until';
type TestColumns = 'tested_at' | 'tested_revision' | 'tested_ok' | 'tested_status' | 'tested_detail';
type PatienceColumns = 'idle_ms' | 'wait_ms';
/** A new connection, without tokens, and not tested. */
export type NewConnection = Omit<ConnectionTable, TokenColumns | TestColumns | PatienceColumns> &
  Partial<Pick<ConnectionTable, PatienceColumns>>;

/** The HMAC key with which an organisation's people are hashed. Sealed, and never replaced. */
export type PersonKeyTable = { organisation_id: string; id: string; hash_key: Uint8Array };

/** A person for whom agents call. `hash`: of who it is; `id`: random, and the only name that leaves the broker. */
export type PersonTable = { organisation_id: string; id: string; hash: string; created_at: number };

/** Who identified a person, and for which agent, as owners and the person see it. */
type IdentifiedBy = {
  /** A source, or the issuer of an assertion. */
  named_by: string;
  verified: Bit;
  /** The agent's uuid. */
  agent_id: string;
};

/** Tokens that a person gave for a connection; the token columns as those of a connection. */
export type PersonTokenTable = IdentifiedBy &
  Pick<
    ConnectionTable,
    | 'organisation_id'
    | 'id'
    | 'platform_id'
    | 'status'
    | 'credential'
    | 'upstream_scopes'
    | 'created_at'
    | 'refresh_token'
    | 'oauth'
    | 'token_id'
    | 'refresh_claim'
    | 'refresh_claim_until'
  > & {
    connection_id: string;
    person_id: string;
    /**
     * `obtained`: the person has not said yet that it is to be kept. `unconfirmed`: an owner has to confirm it. Only what is `kept`
     * is used; of a person and a connection there is one.
     */
    standing: 'obtained' | 'unconfirmed' | 'kept';
    consent_id: string;
    /** To within some minutes; null: never. */
    last_used_at: number | null;
  };

/** A browser in which a person is known for a while. `consent_id`: what is shown; empty: all that the person gave. */
export type PersonSessionTable = {
  cookie_hash: string;
  organisation_id: string;
  person_id: string;
  consent_id: string;
  expires_at: number;
};

/** A person's consent that was begun (specification, Per-person consent). */
export type PersonConsentTable = IdentifiedBy & {
  token_hash: string;
  organisation_id: string;
  id: string;
  /** The agent, or its parent. */
  family_id: string;
  platform_id: string;
  connection_id: string;
  person_id: string;
  status: 'pending' | 'completed';
  /** SHA-256 of the cookie of the browser that goes through it. */
  browser_hash: string | null;
  state_hash: string | null;
  /** Sealed: the flow that `state_hash` belongs to. */
  flow: Uint8Array | null;
  created_at: number;
  expires_at: number;
};

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
  /** The expiry as written in governance.yaml (`30d`), so that applying is idempotent. */
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

/** Replaced by triggers, in the transaction of any change to an organisation's data that facts.ts reads. */
export type FactVersionTable = { organisation_id: string; version: string };

/** The same with whatever a governance file speaks of. */
export type GovernanceVersionTable = { organisation_id: string; version: string };

/** A transaction that changes many rows of an organisation; never committed (migration 0020). `never`: names no row. */
export type BulkChangeTable = { organisation_id: string; never: string };

/** A row exists only while there are recent strikes; `open_until` is null while the breaker is closed. */
export type BreakerTable = {
  organisation_id: string;
  agent_id: string;
  cause: 'breaker_auth_failure' | 'breaker_api_error' | 'breaker_upstream_failure';
  /** Source address, platform id, or empty: the key by which strikes are counted. */
  key: string;
  strikes: number;
  window_start: number;
  opened_at: number | null;
  open_until: number | null;
  /** When the trial call of a half-open breaker was claimed. */
  trial_at: number | null;
};

/** A count of a rate limit within its window, which ends at `until` by the store's clock. */
export type RateCountTable = { key: string; count: number; until: number };

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
  /** The owner's note to the agent. */
  note: string | null;
  decision_audit_id: string | null;
  /**
   * State of the replay of an approved call. `claimed`: nothing was sent yet; `intent`: it may be in progress; `unknown`: it may
   * have been executed.
   */
  exec_state: 'none' | 'claimed' | 'intent' | 'done' | 'failed' | 'unknown';
  /** The process that replays it. */
  lease_owner: string | null;
  /** Fencing token: incremented with each claim, so that writes of an earlier claimant are refused. */
  fence: number;
  executed_at: number | null;
  execution_error: string | null;
  /** JSON text `{status, data}`, sealed. */
  result: Uint8Array | null;
  /** Status, type and size of the result: never content. */
  result_summary: string | null;
  replay_audit_id: string | null;
  /** JSON: the passkey that decided, whether the user was verified, and the counter. */
  decided_with: string | null;
  /** What it does, in a sentence (approvals/held-sentence.ts), sealed; null: it was held before that was stored. */
  sentence: Uint8Array | null;
  /** JSON: names of the channels in which it may be decided by a button; null: none. */
  decide_in: string | null;
  /** JSON: the channel in which it was decided by a button, and as whom it knows them; then `decided_how` is `api`. */
  decided_on: string | null;
  /** JSON: what decided it (`Basis` of policy/standing-terms.ts), sealed; null: no standing approval can be made from it. */
  basis: Uint8Array | null;
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
  | 'decided_with'
  | 'decided_on'
  | 'basis';

type DefaultedOrganisationColumns =
  | 'require_user_verification'
  | 'auto_suspend'
  | 'caller_issuers'
  | 'agents_stopped'
  | 'restored'
  | 'retention'
  | 'passkey_deciders';

export type NewOrganisation = Omit<OrganisationTable, DefaultedOrganisationColumns>;
export type NewOwner = Omit<OwnerTable, 'oidc_subject' | 'last_sign_in_at'>;

/** A new held call. */
export type NewApproval = Omit<ApprovalTable, DefaultedApprovalColumns | 'decide_in'> &
  Partial<Pick<ApprovalTable, 'decide_in' | 'basis'>>;

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
  /** As a restored backup had it, until it is used since; null: it was not restored, keeps no counter, or was used. */
  restored_counter: number | null;
  /** JSON: a list of WebAuthn's transports. */
  transports: string;
  device_name: string;
  /** The authenticator's model id. */
  aaguid: string;
  /** Whether it is synced between devices; synced passkeys have no counter. */
  synced: Bit;
  /** Whether it can sign its owner in without being named (WebAuthn section 4); null: not known. */
  discoverable: Bit | null;
  /**
   * `disabled`: its counter did not increase, so it may have been cloned. `removed`: a disabled one that its owner removed; kept so
   * that it cannot be enrolled again.
   */
  status: 'active' | 'disabled' | 'removed';
  created_at: number;
  last_used_at: number | null;
};

export type AccessRequestTable = {
  organisation_id: string;
  id: string;
  /** For polling by the agent, in addition to its own authentication. */
  token: string;
  agent_id: string;
  platform_id: string;
  /** Empty when none was named. */
  scope: string;
  reason_code: 'not_connected' | 'not_granted' | 'grant_expired' | 'needs_consent' | 'scope_denied';
  /** The agent's stated reason. */
  reason: string | null;
  status: 'pending' | 'approved' | 'denied' | 'expired';
  created_at: number;
  expires_at: number;
  decided_at: number | null;
  decided_by: string | null;
  /** The owner's note to the agent. */
  note: string | null;
  /** JSON: the scopes that the approval granted. */
  granted: string | null;
  decision_audit_id: string | null;
};

/** Secrets that manifests reference: `client_id`, `client_secret`. */
export type PlatformSecretTable = {
  organisation_id: string;
  id: string;
  platform_id: string;
  name: string;
  /** Sealed. */
  value: Uint8Array;
  created_at: number;
};

/** An access token that the broker gets by itself; see the migration. */
export type UpstreamTokenTable = {
  organisation_id: string;
  connection_id: string;
  purpose: string;
  id: string;
  /** Sealed; null while the first one is on its way. */
  token: Uint8Array | null;
  /** From then on it is not used any more; null without a token. */
  refresh_at: number | null;
  expires_at: number;
  claim: string | null;
  claim_until: number | null;
};

/** A pending authorization code flow. */
export type OAuthFlowTable = {
  /** SHA-256 of `state`. */
  state_hash: string;
  organisation_id: string;
  id: string;
  connection_id: string;
  owner_id: string;
  /** The browser session that started it; null when started by API. */
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
  /** The process that makes its call; null once there is an answer, or that process was found dead. */
  instance_id: string | null;
  /** 1: its call is a read, which may be made without a durable intent. */
  is_read: number | null;
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

/** A registration (specification, Registration). */
export type RegistrationTable = {
  token_hash: string;
  /** Null: the owner_id is unknown; the row exists so that this cannot be observed. */
  organisation_id: string | null;
  id: string;
  owner_id: string;
  /** `client_id`: the agent id that an approval creates. */
  agent_id: string;
  agent_name: string;
  agent_description: string | null;
  /** JSON: a list of ScopesOn. */
  requested_scopes: string;
  /** The client's address, for the deciding owner. */
  source: string;
  status: 'pending' | 'approved' | 'rejected' | 'expired';
  created_at: number;
  expires_at: number;
  decided_at: number | null;
  decided_by: string | null;
  decision_audit_id: string | null;
  /** JSON: a list of ScopesOn. */
  granted: string | null;
  /** PKCS#8 PEM, sealed; only between the approval and the claim. */
  private_key: Uint8Array | null;
  claim_until: number | null;
  claimed_at: number | null;
};

/** Scopes on a platform, as a registration asks for them. */
export type ScopesOn = { platformId: string; scopes: string[] };

/** A one-time secret with which an agent of this name binds its own key. */
export type InviteTable = {
  organisation_id: string;
  id: string;
  token_hash: string;
  agent_name: string;
  policy_id: string | null;
  /** JSON: a list of ScopesOn. */
  grants: string;
  /** The inviting owner, who becomes the agent's owner. */
  owner_id: string;
  created_at: number;
  expires_at: number;
  claimed_at: number | null;
  /** The agent's uuid, once there is one. */
  agent_id: string | null;
};

/** Encryption keys for secrets sent to the broker; not per organisation. One is current. */
export type SecretKeyTable = {
  kid: string;
  public_jwk: string;
  /** PKCS#8 DER, sealed; deleted a while after the key was replaced. */
  private_key: Uint8Array | null;
  created_at: number;
  replaced_at: number | null;
};

/** A one-time capability to send a secret for an agent and a platform. */
export type SecretAuthorizationTable = {
  organisation_id: string;
  id: string;
  token_hash: string;
  /** The agent's uuid. */
  agent_id: string;
  platform_id: string;
  /** Label of the connection that is created. */
  label: string;
  /** JSON: scopes of the grant that is created; null: an existing grant uses the secret. */
  scopes: string | null;
  /** Who authorised it. */
  owner_id: string;
  created_at: number;
  expires_at: number;
  used_at: number | null;
  /** The created connection. */
  connection_id: string | null;
};

/** A replaced key of an agent; it cannot be bound again. */
export type FormerKeyTable = { organisation_id: string; fingerprint: string; agent_id: string; replaced_at: number };

/** Refusals of an agent and its children since `window_start`; only with auto-suspension. */
export type RefusalCountTable = { organisation_id: string; agent_id: string; refusals: number; window_start: number };

/** State of the authorization server for MCP clients, in the library's format, by kind. */
export type OAuthRecordTable = {
  kind: string;
  /** The id of a client or grant; for codes and tokens their SHA-256. */
  id: string;
  /** For codes and refresh tokens: their authorisation. */
  authorisation_id: string | null;
  /** JSON text, without the secret behind `id`. */
  payload: string;
  created_at: number;
  expires_at: number | null;
  used_at: number | null;
  /** For a client, the network that registered it (`siteOf`); otherwise null. */
  source: string | null;
};

/** An owner's consent that an MCP client may act as this agent. */
export type McpAuthorisationTable = {
  organisation_id: string;
  id: string;
  /** The agent's uuid. */
  agent_id: string;
  /** Who consented. */
  owner_id: string;
  client_id: string;
  /** The client's self-declared name. */
  client_name: string;
  /** Where its code was sent. */
  redirect_host: string;
  scope: string;
  created_at: number;
  expires_at: number;
  ended_at: number | null;
  /** `reuse`: one of its refresh tokens was used twice, so it may have been stolen. */
  ended_because: 'owner' | 'client' | 'reuse' | null;
};

/** A bearer of an agent for one connection, for clients that cannot sign. */
export type StaticKeyTable = {
  organisation_id: string;
  id: string;
  /** The agent's uuid. */
  agent_id: string;
  connection_id: string;
  /** What the owner calls it. */
  label: string;
  /** SHA-256 of the key, in hexadecimal. */
  token_hash: string;
  /** Who issued it. */
  owner_id: string;
  created_at: number;
  expires_at: number;
  /** Written now and then. */
  last_used_at: number | null;
  ended_at: number | null;
  /** `agent`: it was revoked. `connection`: it was removed. */
  ended_because: 'owner' | 'agent' | 'connection' | null;
};

/** Lets calls pass that are like one that an owner approved. Its terms never change. */
export type StandingApprovalTable = {
  organisation_id: string;
  /** In the order in which they were made. */
  id: string;
  /** The agent's uuid. */
  agent_id: string;
  platform_id: string;
  connection_id: string;
  grant_id: string;
  scope: string;
  /** The held call that it was made from. */
  approval_id: string;
  /** The only session that it is for; null: any. */
  session_id: string | null;
  uses: number;
  uses_left: number;
  expires_at: number;
  /** JSON: versions of policy, guardrails and manifest, and the rules that it stands in for. */
  decided_on: string;
  /** JSON (facts/standing-terms.ts), sealed. */
  terms: Uint8Array;
  /** SHA-256 in hexadecimal. */
  terms_hash: string;
  /** The owner's uuid. */
  decided_by: string;
  decided_how: 'console' | 'api' | 'passkey';
  /** JSON: as of the approval. */
  decided_with: string | null;
  created_at: number;
  ended_at: number | null;
  /** `used`: its last use was made. `agent`: the agent was revoked. `grant`: it was taken away. */
  ended_because: 'owner' | 'used' | 'agent' | 'grant' | null;
  /** The owner's uuid, of one that an owner ended. */
  ended_by: string | null;
};

/** A raw request that is held: the same request sent again joins it. */
export type HeldJoinTable = {
  organisation_id: string;
  agent_id: string;
  /** SHA-256 of what makes it the same request. */
  key: string;
  /** SHA-256 of its Idempotency-Key, or the empty string. */
  separate: string;
  approval_id: string;
  /** Until when a request waits for the decision. */
  open_until: number;
  created_at: number;
};

/** Something that an agent, or a child of it, did. */
export type AgentDeedTable = {
  organisation_id: string;
  /** The agent; of a child its parent. */
  agent_id: string;
  /** Of its kind and of what it is, which is stored nowhere. */
  hash: string;
  kind: DeedKind;
  /** Whether a call that changes something did it. */
  changed: Bit;
  created_at: number;
};

/** A call of an MCP client whose response was not delivered yet. */
export type McpRepeatTable = {
  organisation_id: string;
  agent_id: string;
  /** SHA-256 of the call's content. */
  hash: string;
  /** Its Idempotency-Key. */
  key: string;
  /** The reason of the first attempt. */
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

/** Agents' reports of unexpected responses. */
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

/** Calls by time and by agent or platform, for plots. */
export type ActivityCountTable = {
  organisation_id: string;
  dimension: 'platform_hour' | 'agent_hour' | 'agent_day';
  /** The beginning of the hour or day (UTC), in milliseconds. */
  at: number;
  /** The platform's id, '' where a call named none; or the agent's `agt_` id. */
  name: string;
  /** The result; `failed`: the platform refused it. `made`, `made_failed`: what was made of a call that was approved. */
  outcome: 'allowed' | 'failed' | 'held' | 'denied' | 'blocked' | 'errored' | 'made' | 'made_failed';
  calls: number;
};

/** Up to which row the calls of an organisation were counted. */
export type ActivityCountedTable = { organisation_id: string; row_id: string };

/** Metadata of the store: master key check values, sandbox port. */
export type MetaTable = { name: string; value: string };

/** Running processes, to tell intents of dead processes from those of slow ones. */
/** `release`: which it runs; null: one that does not say so. `member`: of the run (store/instances.ts); 0 while a starting process does not know whether another one is alive. */
export type InstanceTable = { id: string; started_at: number; seen_at: number; member: Bit; release: string | null };

/** A tool of an MCP server: its accepted definition (by an owner, or by the first list), and the last one seen. */
export type McpToolTable = {
  organisation_id: string;
  platform_id: string;
  /** The server's address. */
  server: string;
  name: string;
  /** Canonical JSON of the accepted definition; null: not accepted yet. */
  accepted: string | null;
  accepted_hash: string | null;
  accepted_at: number | null;
  /** The owner's uuid; null: it was in the server's first list. */
  accepted_by: string | null;
  offered: string;
  offered_hash: string;
  offered_at: number;
  effect: ToolEffect;
  /** The owner's uuid; null: from the accepted definition's annotations. */
  effect_by: string | null;
};

/** Which process does a piece of work that one does at a time; `fence` grows with each holder. */
export type LeaseTable = { name: string; holder: string | null; until: number; fence: number };

/** The outbox: what owners are to be told. Written by the database itself (migration 0034). */
export type NoticeTable = {
  organisation_id: string;
  id: string;
  event: NoticeEvent | SettledEvent;
  /** The id of the held call, request, registration, agent or connection. */
  subject_id: string;
  /** The agent's uuid. */
  agent_id: string | null;
  platform_id: string | null;
  created_at: number;
};

/** The key pair of Web Push. */
export type PushKeyTable = {
  id: 'vapid';
  public_jwk: string;
  /** PKCS#8 DER, sealed. */
  private_key: Uint8Array;
  created_at: number;
};

/** A final audit row that has no place in the receipt log yet. */
export type LogPendingTable = { organisation_id: string; row_id: string; row_hash: string; finished_at: number };

/** Final audit rows that have no place yet, which one statement wrote: their ids and hashes one after the other, and when the first and the last ended. */
export type LogBatchTable = {
  organisation_id: string;
  rows: number;
  ids: string;
  row_hashes: string;
  first_at: number;
  last_at: number;
};

/** Where the receipt log of an organisation stands, and its newest checkpoint. Roots are base64. */
export type ReceiptLogTable = {
  organisation_id: string;
  /** The name of the log in its checkpoints and keys. It stays when the broker's URL changes: what was signed under it has to verify. */
  origin: string;
  size: number;
  root: string;
  /** The key that signed last, which is on record. */
  signed_with: string | null;
  checkpoint_size: number | null;
  checkpoint_root: string | null;
  checkpoint_at: number | null;
  /** As the line of a note has it. */
  signature: string | null;
};

/** Up to where rows of a kind that are kept no longer were deleted, by index in the receipt log. */
export type AuditPurgeTable = {
  organisation_id: string;
  kind: RetainedKind;
  /** Of the next row to delete. */
  next_index: number;
  /** Of the first row that no event has announced. */
  announced_index: number;
  /** The audit row of the last event. */
  event_id: string | null;
};

/** The entries of a tile of level 0: 16 bytes of a row's id, and 32 of its hash, each. */
export type LogEntriesTable = {
  organisation_id: string;
  tile_index: number;
  ids: Uint8Array;
  row_hashes: Uint8Array;
  /** The latest end of a row up to here, in milliseconds since the epoch: it never falls from one tile to the next. */
  last_at: number;
};

/** A tile of level 1 and above. */
export type LogTileTable = { organisation_id: string; level: number; tile_index: number; hashes: Uint8Array };

export type LogCheckpointTable = {
  organisation_id: string;
  size: number;
  root: string;
  at: number;
  signature: string;
  /** Lines of witnesses, each with its newline. */
  cosignatures: string | null;
};

/** The keys of the receipt log; the newest one signs. */
export type LogKeyTable = {
  id: string;
  /** 32 bytes in base64. */
  public_key: string;
  /** PKCS#8 DER, sealed; null: retired. */
  private_key: Uint8Array | null;
  created_at: number;
  retired_at: number | null;
};

/** Of what owners are told. */
export const NOTICE_EVENTS = [
  'call_held',
  'access_requested',
  'registration_waiting',
  'agent_suspended',
  'connection_broken',
] as const;
export type NoticeEvent = (typeof NOTICE_EVENTS)[number];
/** That one of these is over: decided, expired, or as it should be again. */
export type SettledEvent =
  | 'call_settled'
  | 'access_settled'
  | 'registration_settled'
  | 'agent_settled'
  | 'connection_settled';

/** Where owners are told. */
export type NoticeChannelTable = {
  organisation_id: string;
  id: string;
  name: string;
  kind: string;
  /** JSON, by kind (config-file/channels.ts): nothing secret. */
  settings: string;
  /** Sealed. */
  secret: Uint8Array | null;
  /** Where the secret comes from, as governance.yaml names it. */
  secret_reference: string | null;
  /** Of a channel of one person; null: of the organisation. */
  owner_id: string | null;
  /** JSON: a ChannelRules (config-file/channels.ts). */
  rules: string;
  /** `gone`: the other side said that there is none any more; nothing is sent there. */
  status: 'active' | 'failing' | 'gone';
  last_ok_at: number | null;
  last_error: string | null;
  origin: 'governance' | 'owner';
  created_at: number;
};

/** Where the audit of an organisation is pushed to (migration 0045). */
export type AuditSinkTable = {
  organisation_id: string;
  id: string;
  name: string;
  kind: string;
  format: string;
  /** JSON, by kind (config-file/audit-sinks.ts): nothing secret. */
  settings: string;
  /** Sealed. */
  secret: Uint8Array | null;
  status: 'active' | 'paused';
  /** Of the first row of the receipt log that the receiver has not acknowledged. */
  next_index: number;
  /** The batch that is on its way ends before this index; null: none is. */
  batch_end: number | null;
  /** Rows that the receiver took from us and said that it does not keep. */
  rejected_rows: number;
  delivered_at: number | null;
  /** null: the last batch arrived. */
  failing_since: number | null;
  failures: number;
  /** In our own words. */
  last_error: string | null;
  /** Nothing is sent before. */
  retry_at: number | null;
  created_at: number;
  /** Where the secret came from, as a governance file names it. */
  secret_reference: string | null;
};

/** One message of a notice on one channel. */
export type NoticeDeliveryTable = {
  organisation_id: string;
  /** What the channel knows the message by: the same for a second copy. */
  id: string;
  channel_id: string;
  notice_id: string;
  event: NoticeEvent;
  subject_id: string;
  step: 'first' | 'reminder' | 'outcome';
  due_at: number;
  attempts: number;
  /** `over`: there was nothing to tell any more. */
  state: 'due' | 'sent' | 'over' | 'gave_up';
  /** What the channel calls the message that was sent: to edit it. */
  external_ref: string | null;
  last_error: string | null;
  created_at: number;
};

export type Schema = {
  organisations: WithDefaults<OrganisationTable, DefaultedOrganisationColumns>;
  owners: WithDefaults<OwnerTable, 'oidc_subject' | 'last_sign_in_at'>;
  agents: AgentTable & CountedChildren;
  platforms: PlatformTable;
  platform_versions: PlatformVersionTable;
  connections: WithDefaults<ConnectionTable, TokenColumns | TestColumns | PatienceColumns>;
  grants: GrantTable;
  policies: PolicyTable;
  policy_versions: PolicyVersionTable;
  guardrails_versions: GuardrailsVersionTable;
  breakers: BreakerTable;
  fact_versions: FactVersionTable;
  governance_versions: GovernanceVersionTable;
  governance_applies: GovernanceApplyTable;
  bulk_changes: BulkChangeTable;
  audit_rows: AuditTable;
  activity_counts: ActivityCountTable;
  activity_counted: ActivityCountedTable;
  approvals: WithDefaults<ApprovalTable, DefaultedApprovalColumns>;
  passkeys: PasskeyTable;
  access_requests: AccessRequestTable;
  platform_secrets: PlatformSecretTable;
  oauth_flows: OAuthFlowTable;
  upstream_tokens: UpstreamTokenTable;
  person_keys: PersonKeyTable;
  persons: PersonTable;
  person_tokens: PersonTokenTable;
  person_consents: PersonConsentTable;
  person_sessions: PersonSessionTable;
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
  held_joins: HeldJoinTable;
  agent_deeds: AgentDeedTable;
  static_keys: StaticKeyTable;
  standing_approvals: StandingApprovalTable;
  tools: McpToolTable;
  leases: LeaseTable;
  rate_counts: RateCountTable;
  notices: NoticeTable;
  push_keys: PushKeyTable;
  log_pending: LogPendingTable;
  log_batches: LogBatchTable;
  receipt_logs: ReceiptLogTable;
  log_entries: LogEntriesTable;
  log_tiles: LogTileTable;
  log_checkpoints: LogCheckpointTable;
  log_keys: LogKeyTable;
  audit_sinks: AuditSinkTable;
  audit_purges: AuditPurgeTable;
  notice_channels: NoticeChannelTable;
  notice_deliveries: NoticeDeliveryTable;
  signing_keys: SigningKeyTable;
  diagnostics: DiagnosticTable;
  meta: MetaTable;
  instances: WithDefaults<InstanceTable, 'member' | 'release'>;
};
