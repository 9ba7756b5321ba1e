/** Tables of organisations and their owners. */
import type { PasskeyDeciders } from '../../policy/passkey-deciders.ts';
import type { Bit } from './column-types.ts';

export type OrganisationTable = {
  id: string;
  name: string;
  publish_identity_documents: Bit;
  /** Current version of the guardrails; 0 when there are none. */
  guardrails_version: number;
  /** Lifetime of a held call. */
  approval_ttl_ms: number;
  created_at: number;
  /** Whether a decision by passkey requires user verification (biometrics or PIN). */
  require_user_verification: Bit;
  /** JSON: an AutoSuspend; null: no auto-suspension. */
  auto_suspend: string | null;
  /** JSON: a list of CallerIssuer; null: none. */
  caller_issuers: string | null;
  /** JSON: an AgentsStopped; null: the organisation's agents are not stopped. */
  agents_stopped: string | null;
  /** JSON: a StoreRestored; null: no review of a restored store is pending. */
  restored: string | null;
  /** JSON: a Retention; null: everything is kept. */
  retention: string | null;
  /** Proof that an admin set the retention (migration 0070); null with a retention: unproven. */
  retention_seal: Uint8Array | null;
  /** Who may decide by passkey without a session. */
  passkey_deciders: PasskeyDeciders;
};

export type OwnerTable = {
  organisation_id: string;
  id: string;
  email: string;
  role: 'admin' | 'approver' | 'viewer';
  /** `first_start`: created by the first start; kept beside the owners in governance.yaml. */
  origin: 'first_start' | 'governance' | 'added';
  created_at: number;
  /** Issuer and `sub` of the identity provider, separated by a space, from the first sign-in on; null before. */
  oidc_subject: string | null;
  /** 1: the role is derived from the person's groups at the identity provider. */
  role_by_groups: number;
  /** When a session was last created by a sign-in link, a passkey or the identity provider. */
  last_sign_in_at: number | null;
};

/** The address of a removed owner, for what the owner decided and changed. */
export type FormerOwnerTable = { organisation_id: string; id: string; email: string; removed_at: number };

/** A program that plans and applies governance files with tokens of its own platform, such as a CI job. */
export type PipelineTable = {
  organisation_id: string;
  id: string;
  name: string;
  role: 'admin' | 'viewer';
  /** `iss` of its tokens. */
  issuer: string;
  /** `sub` of its tokens. */
  subject: string;
  /** URL of the issuer's keys; null: found by discovery. */
  jwks_uri: string | null;
  created_at: number;
  last_used_at: number | null;
};

/** An apply of a governance file. */
export type GovernanceApplyTable = {
  organisation_id: string;
  /** Id of the audit row `governance_applied`. */
  id: string;
  made_by: string;
  how: string;
  detail: string | null;
  change_count: number;
  /** JSON: the first changes only. */
  changes: string;
  /** The state before the apply as a file, in gzip; null: too long. */
  file_before: Uint8Array | null;
  created_at: number;
};

/** Replaced by triggers, in the transaction of any change to data of the organisation that facts.ts reads. */
export type FactVersionTable = { organisation_id: string; version: string };

/** Replaced by triggers likewise, for everything that a governance file covers. */
export type GovernanceVersionTable = { organisation_id: string; version: string };

/** Marks a transaction that changes many rows of an organisation; never committed (migration 0020). `never`: refers to a row that never exists. */
export type BulkChangeTable = { organisation_id: string; never: string };

export type DefaultedOrganisationColumns =
  | 'require_user_verification'
  | 'auto_suspend'
  | 'caller_issuers'
  | 'agents_stopped'
  | 'restored'
  | 'retention'
  | 'retention_seal'
  | 'passkey_deciders';

export type NewOrganisation = Omit<OrganisationTable, DefaultedOrganisationColumns>;

export type NewOwner = Omit<OwnerTable, 'oidc_subject' | 'last_sign_in_at' | 'role_by_groups'> &
  Partial<Pick<OwnerTable, 'role_by_groups'>>;

/** Owner sessions that ended before their expiry, such as by signing out. */
export type EndedSessionTable = { organisation_id: string; session_id: string; expires_at: number };
