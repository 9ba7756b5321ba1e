/** Tables for creating agents and delivering their secrets: registrations, invites, one-time tokens. */
import type { Bit } from './column-types.ts';

export type OneTimeTokenTable = {
  organisation_id: string;
  token_hash: string;
  kind: 'bootstrap' | 'sign_in';
  /** The agent's uuid or the owner's uuid. */
  subject: string;
  /** For a bootstrap token: whether it may replace the agent's existing key. */
  rotates: Bit;
  /** Who made it: the uuid of an owner or pipeline, or `operator`; null: not stored, by an earlier release. */
  made_by: string | null;
  created_at: number;
  expires_at: number;
  used_at: number | null;
};

/** A registration (specification, Registration). */
export type RegistrationTable = {
  token_hash: string;
  /** Null: the owner_id is unknown; the row exists so that the caller cannot detect that. */
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

/** Scopes on a platform, as a registration requests them. */
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
  /** The agent's uuid, once it was created. */
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
  /** The owner who authorised it. */
  owner_id: string;
  created_at: number;
  expires_at: number;
  used_at: number | null;
  /** The created connection. */
  connection_id: string | null;
};
