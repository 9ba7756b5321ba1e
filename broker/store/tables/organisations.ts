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
  /** Shows that an admin set it (migration 0070); null beside a retention: that is not known. */
  retention_seal: Uint8Array | null;
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
  /** 1: the role follows the groups that the identity provider says the person is in. */
  role_by_groups: number;
  /** When a session was last made by a sign-in link, a passkey or the identity provider. */
  last_sign_in_at: number | null;
};

/** What plans and applies governance files with tokens of its own platform, such as a CI job. */
export type PipelineTable = {
  organisation_id: string;
  id: string;
  name: string;
  role: 'admin' | 'viewer';
  /** `iss` of its tokens. */
  issuer: string;
  /** `sub` of its tokens. */
  subject: string;
  /** Where the keys of the issuer are; null: found by discovery. */
  jwks_uri: string | null;
  created_at: number;
  last_used_at: number | null;
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

/** Replaced by triggers, in the transaction of any change to an organisation's data that facts.ts reads. */
export type FactVersionTable = { organisation_id: string; version: string };

/** The same with whatever a governance file speaks of. */
export type GovernanceVersionTable = { organisation_id: string; version: string };

/** A transaction that changes many rows of an organisation; never committed (migration 0020). `never`: names no row. */
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

/** Owner sessions that were signed out before they ended by themselves. */
export type EndedSessionTable = { organisation_id: string; session_id: string; expires_at: number };
