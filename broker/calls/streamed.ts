/** Answers that are passed on as they come. */
import type { PushReport } from '../audit/outcome.ts';
import type { StreamEnding, Transferred } from '../egress/streamed-body.ts';

/** The beginning of a streamed answer, and its body in pieces. Neither holds the credential. */
export type StreamedPart = {
  auditId: string;
  status: number;
  /** Names in lower case, without those of one hop (RFC 9110 §7.6.1) and any that held the credential. */
  headers: Readonly<Record<string, string | string[]>>;
  body: AsyncIterableIterator<Buffer>;
  /** Where it comes from, if the platform redirected there. */
  followed: string | undefined;
  /** The rules that mask it. */
  maskedBy: readonly string[];
  /** Makes the call's intent durable, where it is not yet: of a read that is held back to be passed on whole. */
  makeDurable(): Promise<void>;
  /** Whether all of the body, which was held back, is without the credential in any of the views of an answer. */
  isClean(whole: Buffer): Promise<boolean>;
};

/**
 * Writes a streamed answer to whoever asked, as fast as it is taken, but neither its end nor, where the length was told, its last
 * byte: a door ends it when the call is on record, and breaks it off when it is not. `blocked`: nothing was written, because what was
 * held back is not clean. Throws when whoever asked has left.
 */
export type StreamTaker = (part: StreamedPart) => Promise<'blocked' | undefined>;

/** How a stream went: `received` is what was passed on, `sent` the body of the request. `redacted`: the credential was taken out. `masked`: how many members and values were; undefined: nothing is masked. `report`: of a push, as far as it came. */
export type Streamed = {
  ended: StreamEnding;
  received: Transferred;
  sent: Transferred;
  redacted: boolean;
  masked?: number | undefined;
  report?: PushReport | undefined;
};
