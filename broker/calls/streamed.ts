/** Types of streamed answers. */
import type { PushReport } from '../audit/outcome.ts';
import type { StreamEnding, Transferred } from '../egress/streamed-body.ts';

/** The head of a streamed answer, and its body in pieces. Neither contains the credential. */
export type StreamedPart = {
  auditId: string;
  status: number;
  /** Names in lower case, without hop-by-hop headers (RFC 9110 §7.6.1) and headers that held the credential. */
  headers: Readonly<Record<string, string | string[]>>;
  body: AsyncIterableIterator<Buffer>;
  /** The host that the platform redirected to, if the answer comes from there. */
  followed: string | undefined;
  /** Names of the rules that mask the answer. */
  maskedBy: readonly string[];
  /** Makes the call's intent durable when it is not yet: for a read that is buffered to be passed on whole. */
  makeDurable(): Promise<void>;
  /** Whether a complete, buffered body is free of the credential in all views of an answer. */
  isClean(whole: Buffer): Promise<boolean>;
};

/**
 * Writes a streamed answer to the client, with back-pressure, except its end or, when the length was declared, its last byte: the entry
 * point ends the answer once the call is recorded, and breaks it off when it cannot be. `blocked`: nothing was written, because the
 * buffered body is not clean. Throws when the client has disconnected.
 */
export type StreamConsumer = (part: StreamedPart) => Promise<'blocked' | undefined>;

/**
 * How a stream ended: `received` is what was passed on, `sent` the request body. `redacted`: the credential was removed. `masked`: how many
 * members and values were masked; undefined when no rule masks. `report`: the report of a push, as far as it arrived.
 */
export type Streamed = {
  ended: StreamEnding;
  received: Transferred;
  sent: Transferred;
  redacted: boolean;
  masked?: number | undefined;
  report?: PushReport | undefined;
};
