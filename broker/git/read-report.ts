/**
 * Parses a code host's report of a push (gitprotocol-pack, "Report Status") from the answer in transit: plain pkt-lines, or band 1 of
 * side-band-64k. The host's own texts on refused refs are not kept.
 */
import type { PushReport } from '../audit/outcome.ts';
import type { GitRef } from '../policy/facts.ts';
import type { Push } from './command-list.ts';
import { type PktLine, PktLineReader } from './pkt-line.ts';

const REPORT_BAND = 1;
/** Bands 2 (progress) and 3 (fatal error). No line of a report begins with these bytes. */
const LAST_BAND = 3;
const OF_REF = /^(ok|ng) ([^ ]+)/;
const ASKED = /^report-status(?:-v2)?(?:=|$)/;

/** Parses one answer; memory is bounded by two pkt-lines and the names of the push's refs. */
export class ReportReader {
  readonly #refs: ReadonlySet<string>;
  readonly #isAsked: boolean;
  readonly #lines = new PktLineReader();
  readonly #inBand = new PktLineReader();
  readonly #reported = new Set<string>();
  readonly #refused = new Set<string>();
  #isUnpacked = true;
  #hasEnded = false;

  constructor({ refs, capabilities }: { refs: readonly Pick<GitRef, 'name'>[] } & Pick<Push, 'capabilities'>) {
    this.#refs = new Set(refs.map(({ name }) => name));
    this.#isAsked = capabilities.some((one) => ASKED.test(one));
  }

  /** Takes the next piece of the answer. */
  push(piece: Uint8Array): void {
    if (this.#hasEnded) return;
    for (const line of this.#lines.read(piece)) this.#takeBand(line);
  }

  /** Returns what was reported so far. */
  read(): PushReport {
    const names = [...this.#refs];
    // If the pack was not stored, no ref was changed.
    if (!this.#isUnpacked) return { refused: names };
    const isWhole = names.every((name) => this.#reported.has(name));
    return {
      refused: names.filter((name) => this.#refused.has(name)),
      ...(!isWhole && { absent: this.#isAsked ? 'missing' : 'not_asked' }),
    };
  }

  #takeBand(line: PktLine): void {
    const band = line.kind === 'data' ? (line.data[0] ?? 0) : 0;
    if (line.kind !== 'data' || band > LAST_BAND) this.#take(line);
    else if (band === REPORT_BAND) for (const one of this.#inBand.read(line.data.subarray(1))) this.#take(one);
  }

  #take(line: PktLine): void {
    if (line.kind === 'flush') this.#hasEnded = true;
    if (line.kind !== 'data' || this.#hasEnded) return;
    const text = line.data.toString().replace(/\n$/, '');
    if (text.startsWith('unpack ')) this.#isUnpacked = text === 'unpack ok';
    const [, word, name = ''] = OF_REF.exec(text) ?? [];
    if (!this.#refs.has(name)) return;
    this.#reported.add(name);
    if (word === 'ng') this.#refused.add(name);
  }
}
