/** Writes an answer that is passed on: a short one as a whole after it was recorded, any other as a stream. */
import type { ServerResponse } from 'node:http';
import type { Outcome } from '../audit/outcome.ts';
import type { StreamedPart } from '../calls/streamed.ts';
import type { CallLease } from '../egress/call-lease.ts';
import { endIncomplete, resetConnection } from './disconnects.ts';

/** Size limit of an answer that is held back until it is recorded. */
const HELD_BACK_BYTES = 1024 * 1024;
/** The same for an answer that is rewritten: a release of GitHub has up to 1,000 files of about 2 KB of JSON each. */
const REWRITTEN_BYTES = 4 * 1024 * 1024;

/** A held-back answer up to this size is written together with its head in one write, encoded as latin1: two chunks cost more. */
const ONE_WRITE_BYTES = 64 * 1024;

/** The client has disconnected, or the lease was stopped. */
class Left extends Error {}

/** Status and headers of an answer. */
export type AnswerHead = { status: number; headers: Readonly<Record<string, string | string[]>> };

/**
 * What to do with an answer. `holdsBack`: whether an answer that begins so is held back, and for how many milliseconds at most; false: it is
 * streamed. `looksThrough`: whether the held-back bytes are searched in all decodings. `head`: status and headers to send.
 */
export type AnswerFor = {
  response: ServerResponse;
  lease: CallLease;
  holdsBack: (part: StreamedPart) => false | { mostMs: number };
  looksThrough: boolean;
  head: (part: StreamedPart) => AnswerHead;
  /** Rewrites an answer that was held back as a whole. */
  rewrite?: ((whole: Buffer) => Buffer) | undefined;
};

export class AnswerWriter {
  readonly #for: AnswerFor;
  #held: Buffer[] = [];
  #head: AnswerHead | undefined;
  /** How many bytes may be written before the answer is recorded; with the last byte of a declared length the client has a complete answer. */
  #mayWrite = Number.POSITIVE_INFINITY;
  #last: Buffer | undefined;

  constructor(answerFor: AnswerFor) {
    this.#for = answerFor;
    const { response, lease } = answerFor;
    lease.whenStopped(() => {
      if (response.headersSent) resetConnection(response);
    });
  }

  /** Acts as a StreamConsumer: writes neither the end nor anything that is held back. */
  async take(part: StreamedPart): Promise<undefined | 'blocked'> {
    this.#head = this.#for.head(part);
    const { body, makeDurable, isClean } = part;
    const held = this.#for.holdsBack(part);
    const next = held === false ? undefined : await this.#holdBack(body, held.mostMs);
    if (next === 'whole') {
      if (!this.#for.looksThrough || (await isClean(Buffer.concat(this.#held)))) return undefined;
      this.#held = [];
      return 'blocked';
    }
    // An answer that is too long to be rewritten is not sent unchanged, except a list: clients read long lists, and rarely take an address from one.
    if (this.#for.rewrite && !isList(this.#held)) return 'blocked';
    await makeDurable();
    this.#writeHead();
    for (const piece of this.#held.splice(0)) await this.#write(piece);
    const first = await next?.pending;
    if (first !== undefined && !first.done) await this.#write(first.value);
    for await (const piece of body) await this.#write(piece);
    return undefined;
  }

  /** Ends the answer of a call that is recorded; an incomplete answer is cut off. Returns false when none was begun, and none is complete. */
  finish(outcome: Outcome): boolean {
    const { response } = this.#for;
    const isWhole = outcome.kind === 'streamed' && outcome.ended === 'complete';
    if (!isWhole && !response.headersSent) return false;
    if (isWhole && !response.headersSent) {
      const held = Buffer.concat(this.#held);
      const whole = this.#for.rewrite?.(held) ?? held;
      this.#writeHead(whole.length);
      if (whole.length > 0 && whole.length <= ONE_WRITE_BYTES) response.end(whole.toString('latin1'), 'latin1');
      else response.end(whole);
    } else if (isWhole) response.end(this.#last);
    else endIncomplete(response);
    return true;
  }

  /** `whole`: the body ended. Otherwise the pending read, if there is one. */
  async #holdBack(
    body: StreamedPart['body'],
    mostMs: number,
  ): Promise<'whole' | { pending?: ReturnType<StreamedPart['body']['next']> }> {
    let timer: NodeJS.Timeout | undefined;
    const late = Number.isFinite(mostMs)
      ? new Promise<'late'>((resolve) => {
          timer = setTimeout(resolve, mostMs, 'late');
        })
      : undefined;
    try {
      let size = 0;
      const most = this.#for.rewrite ? REWRITTEN_BYTES : HELD_BACK_BYTES;
      while (size <= most) {
        const pending = body.next();
        const read = await (late ? Promise.race([pending, late]) : pending);
        if (read === 'late') return { pending };
        if (read.done) return 'whole';
        size += read.value.length;
        this.#for.lease.count(read.value.length);
        this.#held.push(read.value);
      }
      return {};
    } finally {
      clearTimeout(timer);
    }
  }

  #writeHead(bytes?: number): void {
    const { response } = this.#for;
    const { status, headers } = this.#head ?? { status: 500, headers: {} };
    if (bytes === undefined) {
      // nginx buffers answers of unknown length: the output of a model would arrive in one piece.
      const length = headers['content-length'];
      const unknown = length === undefined && { 'X-Accel-Buffering': 'no' };
      if (length !== undefined) this.#mayWrite = Number(length) - 1;
      return void response.writeHead(status, { ...headers, ...unknown });
    }
    if (bytes === 0) return void response.writeHead(status, headers);
    const { 'content-length': _, ...others } = headers;
    response.writeHead(status, { ...others, 'Content-Length': bytes });
  }

  /** Writes with back-pressure, all but the last byte of an answer whose length was declared. */
  async #write(next: Buffer): Promise<void> {
    const { response, lease } = this.#for;
    if (response.destroyed || lease.stopped) throw new Left();
    const piece = next.subarray(0, Math.max(0, this.#mayWrite));
    this.#mayWrite -= piece.length;
    if (piece.length < next.length) this.#last = next.subarray(piece.length);
    if (piece.length === 0 || response.write(piece)) return;
    await new Promise<void>((resolve, reject) => {
      const over = () => {
        response.off('drain', drained).off('close', left);
      };
      const drained = () => {
        over();
        resolve();
      };
      const left = () => {
        over();
        reject(new Left());
      };
      response.on('drain', drained).on('close', left);
    });
  }
}

/** Whether JSON begins with a list. */
const isList = ([first]: readonly Buffer[]): boolean => /^\s*\[/.test(first?.toString('latin1', 0, 64) ?? '');
