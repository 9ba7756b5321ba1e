/** Runs long work in slices, so that other requests are served in between. */
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';
import { makeSharedSemaphore } from './semaphore.ts';

/** Not noticeable for other requests, and much longer than a turn of the event loop costs. */
const SLICE_MS = 4;

/** Work that waits for its next slice. `order`: when it began. */
type Waiting = { organisation: string; order: number; resume(): void };

/**
 * Runs one slice of long work in each turn of the event loop, however many organisations and clients have work: of the organisation that waits longest, and
 * of that the oldest work. So turns stay short, and little work is begun and not complete, which takes memory.
 */
export class FairSlices {
  #waiting: Waiting[] = [];
  /** When an organisation had its last slice. */
  readonly #served = new Map<string, number>();
  #slices = 0;
  #begun = 0;

  /** Returns the function to await between pieces of one work. */
  pacer(organisation: string): () => Promise<void> {
    const order = this.#begun++;
    let since = Number.NEGATIVE_INFINITY;
    return async () => {
      if (performance.now() - since < SLICE_MS) return;
      await new Promise<void>((resume) => {
        if (this.#waiting.push({ organisation, order, resume }) === 1) setImmediate(() => this.#resumeNext());
      });
      since = performance.now();
    };
  }

  #resumeNext(): void {
    const lastSlice = ({ organisation }: Waiting) => this.#served.get(organisation) ?? -1;
    const next = this.#waiting.reduce((first, one) => {
      const isEarlier =
        lastSlice(one) === lastSlice(first) ? one.order < first.order : lastSlice(one) < lastSlice(first);
      return isEarlier ? one : first;
    });
    this.#waiting = this.#waiting.filter((one) => one !== next);
    this.#served.set(next.organisation, this.#slices++);
    next.resume();
    if (this.#waiting.length > 0) setImmediate(() => this.#resumeNext());
    else this.#served.clear();
  }
}

/** How often the processor time of the thread is read, for work that may turn out to be long: reading it takes microseconds. */
const CPU_READ_MS = 1;

/** An organisation whose work was long twice in this time counts as one with long work; a single long one may be a garbage collection. */
const LONG_WORK_MS = 1_000;

/**
 * Runs work of unknown length that cannot be divided. Work of an organisation that was long before is run one after another, in turns between
 * organisations, each after a pause as long as the previous one. So an organisation takes half of the main thread at most.
 */
export class MeasuredWork {
  readonly #oneOfEach = makeSharedSemaphore(Number.POSITIVE_INFINITY, 1);
  readonly #slices = new FairSlices();
  /** When the last two works of an organisation that were long ended. Never removed: there are few organisations. */
  readonly #long = new Map<string, [before: number, last: number]>();
  /** The processor time of this thread when it was last read. */
  #cpu = { at: Number.NEGATIVE_INFINITY, ms: 0 };

  async run<Result>(organisation: string, work: () => Result): Promise<Result> {
    const [before] = this.#long.get(organisation) ?? [Number.NEGATIVE_INFINITY];
    if (performance.now() - before > LONG_WORK_MS) return this.#measure(organisation, work).result;
    return await new Promise((resolve, reject) => {
      void this.#oneOfEach(organisation, async () => {
        await this.#slices.pacer(organisation)();
        try {
          const { result, ms } = this.#measure(organisation, work);
          resolve(result);
          if (ms >= SLICE_MS) await wait(ms, undefined, { ref: false });
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  /**
   * Work is long when both clocks say so. On a busy machine any work can take long, so processor time counts; but Linux updates that of a running thread only
   * at timer ticks, so work of microseconds that a tick falls into reads as 4 ms. What the thread used between the last reading and the work is not of the
   * work: it is subtracted, as if it had been all of that time.
   */
  #measure<Result>(organisation: string, work: () => Result): { result: Result; ms: number } {
    const began = performance.now();
    if (began - this.#cpu.at >= CPU_READ_MS) this.#cpu = { at: began, ms: cpuMs() };
    const before = this.#cpu;
    const result = work();
    const elapsed = performance.now() - began;
    const ms = elapsed < SLICE_MS ? elapsed : Math.min(elapsed, cpuMs() - before.ms - (began - before.at));
    if (ms >= SLICE_MS) {
      const [, last] = this.#long.get(organisation) ?? [0, Number.NEGATIVE_INFINITY];
      this.#long.set(organisation, [last, performance.now()]);
    }
    return { result, ms };
  }
}

/** Returns the processor time of this thread in milliseconds. */
const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};

/**
 * Returns a function to await between pieces of work. It yields to the event loop when a slice is used up, and on its first call, because
 * the current turn may already be long from other work.
 */
export function pacer(): () => Promise<void> {
  let since = Number.NEGATIVE_INFINITY;
  return async () => {
    if (performance.now() - since < SLICE_MS) return;
    await nextTurn();
    since = performance.now();
  };
}

/** Runs a generator in slices. */
export async function inSlices<Result>(work: Generator<void, Result>, rest = pacer()): Promise<Result> {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
    await rest();
  }
}

/** Runs a generator in one piece. */
export function runToEnd<Result>(work: Generator<void, Result>): Result {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}
