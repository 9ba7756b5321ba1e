/**
 * Defines a kind of channel: one file in this folder that sends a message, and edits it later where the service supports that. The kinds are listed
 * in kinds.ts; their settings are described in config-file/channels.ts.
 */
import type { Secret } from '../crypto/secret.ts';
import type { Outbound } from '../egress/dispatcher.ts';
import type { Instant } from '../policy/facts.ts';
import type { PushKey } from '../push-key.ts';
import type { Message } from './message.ts';

/** The context in which a channel sends. */
export type Sending = {
  channelId: string;
  /** As config-file/channels.ts defines them for the kind; validated when they are read from the store. */
  settings: Readonly<Record<string, unknown>>;
  secret: Secret | undefined;
  /** The only way to send requests; see post.ts. */
  outbound: Outbound;
  /**
   * For Web Push: the client for endpoints that came from a browser, which must be public addresses whatever the operator allows, and this broker's
   * key pair; `key` rejects with SealError when the pair was altered in the store.
   */
  push?: { outbound: Outbound; key: () => Promise<PushKey> };
  now: Instant;
};

/**
 * The result of a send. `sent`: the channel accepted it; `ref`: the service's id of the message, for editing it; `lacking`: why not everybody of the
 * channel gets it, which is not retried, because the others would get it again. `failed`: it is retried, not before
 * `afterMs` if the channel gave a delay. `gone`: the channel does not exist any more, and nothing more is sent to it. `why`: a sentence of ours,
 * which contains nothing of the answer but its status, and nothing secret.
 */
export type Sent =
  | { kind: 'sent'; ref?: string; lacking?: string }
  | { kind: 'failed'; why: string; afterMs?: number }
  | { kind: 'gone'; why: string };

export type ChannelKind = {
  /** Sends a message. Must not throw, whatever the peer does. */
  send(sending: Sending, message: Message): Promise<Sent>;
  /** Whether anybody whom the channel reaches still has to decide. Absent: always. */
  concerns?(sending: Pick<Sending, 'settings'>, message: Message): boolean;
  /**
   * Writes an update or the outcome into messages that were sent. `refs`: the refs that `send` returned for them; empty texts for a kind without refs.
   * Retried after a failure. Absent when the kind cannot edit.
   */
  edit?(sending: Sending, message: Message, refs: readonly string[]): Promise<Sent>;
  /** Registers `address`, with `secret`, for clicks at the service, where that is needed; called when an owner tests the channel. */
  listen?(sending: Sending, address: string, secret: string): Promise<Sent>;
  /** Removes the registration of `address` for clicks, if it is still the registered one; called when the channel is removed. */
  stopListening?(sending: Sending, address: string): Promise<Sent>;
};
