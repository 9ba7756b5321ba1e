/** A request to the broker and its response, independent of the transport. */

export type BrokerRequest = {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path and query, from the broker's root: `/v1/actions`. */
  path: string;
  headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  body?: unknown;
  /** How long the response may stall before the request is abandoned, in milliseconds; set where that is longer than the default. */
  timeoutMs?: number;
  /** Aborting stops waiting for the response; the request may still be executed. */
  signal?: AbortSignal;
};

export type BrokerReply = {
  status: number;
  headers: { get(name: string): string | null };
  /** The body; empty when there is none. */
  text: string;
};

/**
 * Sends a request as one agent. Throws BrokerUnreachable without a response, and the signal's reason when it is aborted.
 */
export type Send = (request: BrokerRequest) => Promise<BrokerReply>;

/** The broker did not respond. */
export class BrokerUnreachable extends Error {
  override readonly name = 'BrokerUnreachable';
  /** `unreachable`, or another reason. */
  readonly code: string;
  /** Whether the request may have reached the broker: false only if the connection failed. */
  readonly maybeSent: boolean;
  /** Whether a response began and was cut off. */
  readonly isCut: boolean;

  constructor(
    message: string,
    { code = 'unreachable', maybeSent, isCut = false }: { code?: string; maybeSent: boolean; isCut?: boolean },
  ) {
    super(message);
    this.code = code;
    this.maybeSent = maybeSent;
    this.isCut = isCut;
  }
}
