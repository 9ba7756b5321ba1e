/** Tables of what owners are told, and where. */

/** The outbox: what owners are to be told. Written by the database itself (migration 0034), but for passkeys. */
export type NoticeTable = {
  organisation_id: string;
  id: string;
  event: NoticeEvent | SettledEvent;
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

/** Of what owners are told. */
export const NOTICE_EVENTS = [
  'call_held',
  'access_requested',
  'registration_waiting',
  'agent_suspended',
  'connection_broken',
  'passkey_added',
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
