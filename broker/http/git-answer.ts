/** Writes the answer of a code host to a git client: a short one of refs as a whole, any other as it comes. */
import type { ServerResponse } from 'node:http';
import type { Outcome } from '../audit/outcome.ts';
import type { StreamedPart } from '../calls/streamed.ts';
import type { CallLease } from '../egress/call-budget.ts';
import { type GitTarget, mediaTypeOf, nameOf } from '../git/git-call.ts';
import { gitOutcomeReply } from './git-outcome.ts';
import { GIT_HEADERS } from './line.ts';
import type { Reply } from './reply.ts';

/** An answer of refs or to a probe is held back up to this, and written when it is on record. */
const HELD_BACK_BYTES = 1024 * 1024;

/** Whoever asked has left. */
class Left extends Error {}

/** What an answer is for: `isShort`, of refs or to a probe. */
export type AnswerFor = { response: ServerResponse; target: GitTarget; isShort: boolean; lease: CallLease };

export class AnswerWriter {
  readonly #for: AnswerFor;
  #held: Buffer[] = [];

  constructor(answerFor: AnswerFor) {
    this.#for = answerFor;
  }

  /** As a StreamTaker: neither the end nor, of what is held back, anything is written. */
  async take({ auditId, body, makeDurable }: StreamedPart): Promise<void> {
    if (this.#for.isShort && (await this.#holdBack(body))) return;
    if (this.#for.isShort) await makeDurable();
    this.#writeHead(auditId);
    for (const piece of this.#held.splice(0)) await this.#write(piece);
    for await (const piece of body) await this.#write(piece);
  }

  /** Ends the answer of a call that is on record, by `send` where none was begun; one that is not whole is broken off. */
  finish(outcome: Outcome, send: (reply: Reply) => void): void {
    const { response, target } = this.#for;
    const isWhole = outcome.kind === 'streamed' && outcome.ended === 'complete';
    if (isWhole && !response.headersSent) {
      const whole = Buffer.concat(this.#held);
      this.#writeHead(outcome.call.auditId, whole.length);
      response.end(whole);
    } else if (isWhole) response.end();
    else if (response.headersSent) response.destroy();
    else send(gitOutcomeReply(outcome, nameOf(target)));
  }

  /** True: that was all of it. */
  async #holdBack(body: StreamedPart['body']): Promise<boolean> {
    let size = 0;
    while (size <= HELD_BACK_BYTES) {
      const { done, value } = await body.next();
      if (done) return true;
      size += value.length;
      this.#for.lease.count(value.length);
      this.#held.push(value);
    }
    return false;
  }

  #writeHead(auditId: string, bytes?: number): void {
    const { response, target } = this.#for;
    response.writeHead(200, {
      ...GIT_HEADERS,
      'Content-Type': mediaTypeOf(target.service, target.isAdvertisement ? 'advertisement' : 'result'),
      'X-Svc-Audit-Id': auditId,
      ...(bytes !== undefined && { 'Content-Length': bytes }),
    });
  }

  /** As fast as it is taken. */
  async #write(piece: Buffer): Promise<void> {
    const { response } = this.#for;
    if (response.destroyed) throw new Left();
    if (response.write(piece)) return;
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
