/**
 * Table types for Kysely. Ids and states are text, times are milliseconds since the epoch, JSON is text, secrets and raw bodies are
 * bytes, booleans are 0 or 1: the common subset of SQLite and PostgreSQL.
 */
import type { AuditTable } from './audit-columns.ts';
import type {
  AgentTable,
  BreakerTable,
  CountedChildren,
  DiagnosticTable,
  FormerKeyTable,
  McpAuthorisationTable,
  RefusalCountTable,
  StaticKeyTable,
  WorkloadTable,
} from './tables/agents.ts';
import type {
  AgentDeedTable,
  ApprovalTable,
  DefaultedApprovalColumns,
  HeldJoinTable,
  PasskeyTable,
  StandingApprovalTable,
  UsedChallengeTable,
} from './tables/approvals.ts';
import type {
  ActivityCountedTable,
  ActivityCountTable,
  IdempotencyTable,
  McpRepeatTable,
  RateCountTable,
  StoredResponsesTable,
} from './tables/calls.ts';
import type { WithDefaults } from './tables/column-types.ts';
import type {
  ConnectionTable,
  OAuthFlowTable,
  TestColumns,
  TimeoutColumns,
  TokenColumns,
  TokenRevocationTable,
  UpstreamTokenTable,
} from './tables/connections.ts';
import type { InstanceTable, LeaseTable, MetaTable, OAuthRecordTable, SigningKeyTable } from './tables/installation.ts';
import type { NoticeChannelTable, NoticeDeliveryTable, NoticeTable, PushKeyTable } from './tables/notices.ts';
import type {
  BulkChangeTable,
  DefaultedOrganisationColumns,
  EndedSessionTable,
  FactVersionTable,
  FormerOwnerTable,
  GovernanceApplyTable,
  GovernanceVersionTable,
  OrganisationTable,
  OwnerTable,
  PipelineTable,
} from './tables/organisations.ts';
import type {
  PersonConsentTable,
  PersonKeyTable,
  PersonSessionTable,
  PersonTable,
  PersonTokenTable,
} from './tables/people.ts';
import type { McpToolTable, PlatformSecretTable, PlatformTable, PlatformVersionTable } from './tables/platforms.ts';
import type {
  AuditPurgeTable,
  AuditSinkTable,
  LogBatchTable,
  LogCheckpointTable,
  LogEntriesTable,
  LogKeyTable,
  LogPendingTable,
  LogTileTable,
  ReceiptLogTable,
} from './tables/receipt-log.ts';
import type {
  InviteTable,
  OneTimeTokenTable,
  RegistrationTable,
  SecretAuthorizationTable,
  SecretKeyTable,
} from './tables/registrations.ts';
import type {
  AccessRequestTable,
  CallMarkTable,
  GrantTable,
  GuardrailsVersionTable,
  LimitCountTable,
  PolicyTable,
  PolicyVersionTable,
} from './tables/rules.ts';

export type Schema = {
  organisations: WithDefaults<OrganisationTable, DefaultedOrganisationColumns>;
  former_owners: FormerOwnerTable;
  owners: WithDefaults<OwnerTable, 'oidc_subject' | 'last_sign_in_at' | 'role_by_groups'>;
  pipelines: PipelineTable;
  agents: AgentTable & CountedChildren;
  platforms: PlatformTable;
  platform_versions: PlatformVersionTable;
  connections: WithDefaults<ConnectionTable, TokenColumns | TestColumns | TimeoutColumns>;
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
  token_revocations: TokenRevocationTable;
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
  limit_counts: LimitCountTable;
  call_marks: CallMarkTable;
  workloads: WorkloadTable;
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
