/** Tables of notices to owners, and of the channels for them. */

/** The outbox of notices. Written by triggers (migrations 0034 and 0076), except for notices about passkeys, replays, approvals and corrections. */
export type NoticeTable = {
  organisation_id: string;
  id: string;
  event: NoticeEvent | SettledEvent | 'call_replayed' | 'call_changed';
  /** The id of the held call, request, registration, agent, connection or passkey. */
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

/** Events that owners are notified of. */
export const NOTICE_EVENTS = [
  'call_held',
  'access_requested',
  'registration_waiting',
  'agent_suspended',
  'connection_broken',
  'passkey_added',
] as const;

export type NoticeEvent = (typeof NOTICE_EVENTS)[number];

/** `call_changed`: a held call that still waits was approved by somebody, who may have been removed since, or corrected; messages about it are updated. */
export type DeliveryEvent = NoticeEvent | 'call_changed';

/** Events that end one of the above: decided, expired, or back to normal. `call_replayed`, which follows: an approved call was made, or not. */
export type SettledEvent =
  | 'call_settled'
  | 'access_settled'
  | 'registration_settled'
  | 'agent_settled'
  | 'connection_settled';

/** A channel on which owners are notified. */
export type NoticeChannelTable = {
  organisation_id: string;
  id: string;
  name: string;
  kind: string;
  /** JSON, by kind (config-file/channels.ts): not secret. */
  settings: string;
  /** Sealed. */
  secret: Uint8Array | null;
  /** Where the secret comes from, as in governance.yaml. */
  secret_reference: string | null;
  /** The owner of a personal channel; null: it belongs to the organisation. */
  owner_id: string | null;
  /** JSON: a ChannelRules (config-file/channels.ts). */
  rules: string;
  /** `gone`: the receiving service reported that the target no longer exists; nothing is sent to it. */
  status: 'active' | 'failing' | 'gone';
  last_ok_at: number | null;
  last_error: string | null;
  origin: 'governance' | 'owner';
  created_at: number;
};

/** One message of a notice on one channel. */
export type NoticeDeliveryTable = {
  organisation_id: string;
  /** Identifies the message to the channel, so that it can detect duplicates. */
  id: string;
  channel_id: string;
  notice_id: string;
  event: DeliveryEvent;
  subject_id: string;
  step: 'first' | 'reminder' | 'outcome';
  due_at: number;
  /** Including one that is under way; `last_error` is null meanwhile. */
  attempts: number;
  /** `over`: cancelled, because there was nothing to report any more. */
  state: 'due' | 'sent' | 'over' | 'gave_up';
  /** The channel's id of the sent message, for editing it. */
  external_ref: string | null;
  last_error: string | null;
  created_at: number;
};
