/** One request to the broker and its answer, without saying how they travel. */

export type BrokerRequest = {
  method: 'GET' | 'POST';
  /** Path and query, from the broker's root: `/v1/actions`. */
  path: string;
  headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  body?: unknown;
  /** Aborting it gives up waiting for the answer; what was sent stays sent. */
  signal?: AbortSignal;
};

export type BrokerReply = {
  status: number;
  headers: { get(name: string): string | null };
  /** The body; empty when there is none. */
  text: string;
};

/**
 * Sends a request in the name of one agent. Throws BrokerUnreachable when there is no answer, and the signal's reason when
 * it is aborted.
 */
export type Send = (request: BrokerRequest) => Promise<BrokerReply>;

/** No answer came from the broker. */
export class BrokerUnreachable extends Error {
  override readonly name = 'BrokerUnreachable';
  /** `unreachable`, or what else kept the request from being answered. */
  readonly code: string;
  /** Whether the request may have reached the broker: only a connection that was never made says that it did not. */
  readonly maybeSent: boolean;

  constructor(message: string, { code = 'unreachable', maybeSent }: { code?: string; maybeSent: boolean }) {
    super(message);
    this.code = code;
    this.maybeSent = maybeSent;
  }
}
