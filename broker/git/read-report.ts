/**
 * What a code host reports of a push (gitprotocol-pack, "Report Status"), read from its answer on the way through. It is in pkt-lines, which
 * come as they are, or in band 1 of side-band-64k. The host's own words on why it refused a ref are not kept.
 */
import type { PushReport } from '../audit/outcome.ts';
import type { GitRef } from '../policy/facts.ts';
import type { Push } from './command-list.ts';
import { type PktLine, PktLineReader } from './pkt-line.ts';

const REPORT_BAND = 1;
/** Progress (2), and an error that ends all (3). No line of a report begins so. */
const LAST_BAND = 3;
const OF_REF = /^(ok|ng) ([^ ]+)/;
const ASKED = /^report-status(?:-v2)?(?:=|$)/;

/** Reads one answer, in memory that is bounded by two pkt-lines and the names of the push's refs. */
export class ReportReader {
  readonly #refs: ReadonlySet<string>;
  readonly #isAsked: boolean;
  readonly #lines = new PktLineReader();
  readonly #inBand = new PktLineReader();
  readonly #told = new Set<string>();
  readonly #refused = new Set<string>();
  #isUnpacked = true;
  #isOver = false;

  constructor({ refs, capabilities }: { refs: readonly Pick<GitRef, 'name'>[] } & Pick<Push, 'capabilities'>) {
    this.#refs = new Set(refs.map(({ name }) => name));
    this.#isAsked = capabilities.some((one) => ASKED.test(one));
  }

  /** Takes the next piece of the answer. */
  push(piece: Uint8Array): void {
    if (this.#isOver) return;
    for (const line of this.#lines.read(piece)) this.#takeBand(line);
  }

  /** What was reported until now. */
  read(): PushReport {
    const names = [...this.#refs];
    // Nothing is changed by a pack that was not stored.
    if (!this.#isUnpacked) return { refused: names };
    const isWhole = names.every((name) => this.#told.has(name));
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
    if (line.kind === 'flush') this.#isOver = true;
    if (line.kind !== 'data' || this.#isOver) return;
    const text = line.data.toString().replace(/\n$/, '');
    if (text.startsWith('unpack ')) this.#isUnpacked = text === 'unpack ok';
    const [, word, name = ''] = OF_REF.exec(text) ?? [];
    if (!this.#refs.has(name)) return;
    this.#told.add(name);
    if (word === 'ng') this.#refused.add(name);
  }
}
