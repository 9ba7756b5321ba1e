/**
 * What a kind of channel is: one file in this folder that sends a message, and changes it afterwards if it can. It is named in
 * kinds.ts, and what owners write of it in config-file/channels.ts.
 */
import type { Secret } from '../crypto/secret.ts';
import type { Outbound } from '../egress/dispatcher.ts';
import type { Instant } from '../policy/facts.ts';
import type { PushKey } from '../push-key.ts';
import type { Message } from './message.ts';

/** What a kind of channel sends with. */
export type Sending = {
  channelId: string;
  /** As config-file/channels.ts describes them for the kind; checked when they were read from the store. */
  settings: Readonly<Record<string, unknown>>;
  secret: Secret | undefined;
  /** The only way out; see post.ts. */
  outbound: Outbound;
  /**
   * Of Web Push: the way to addresses that came from a browser, which are public ones whatever the operator allows, and the key by
   * which push services know this broker; rejects with SealError when that was altered in the store.
   */
  push?: { outbound: Outbound; key: () => Promise<PushKey> };
  now: Instant;
};

/**
 * What came of it. `sent`: the channel took it; `ref`: what it calls the message, to edit it. `failed`: it is tried again, not before
 * `afterMs` where the channel said so. `gone`: there is no such channel any more, and nothing is sent there again. `why`: a
 * sentence of ours, which never holds anything of the answer but its status, and nothing secret.
 */
export type Sent =
  | { kind: 'sent'; ref?: string }
  | { kind: 'failed'; why: string; afterMs?: number }
  | { kind: 'gone'; why: string };

export type ChannelKind = {
  /** Sends a message. Must not throw for what the other side does. */
  send(sending: Sending, message: Message): Promise<Sent>;
  /**
   * Writes what became of it (`message.outcome`) where the message stands. `refs`: what `send` answered for each that was sent of the
   * same notice; a kind without such refs gets an empty text for each. Repeated after a failure. A kind that cannot has none.
   */
  edit?(sending: Sending, message: Message, refs: readonly string[]): Promise<Sent>;
  /**
   * Has the service tell of clicks at `address`, with `secret`, where it has to be asked for that; done when an owner tries the channel.
   */
  listen?(sending: Sending, address: string, secret: string): Promise<Sent>;
};
