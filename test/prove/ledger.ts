/** What a run of `npm run prove` counts, and where it is told: a line of JSON per test in the file that PROVE_RESULT names. */
import { appendFileSync } from 'node:fs';

/** What was done of a part on a store. `error`: what did not hold. */
export type Told = {
  part: string;
  store: string;
  seed: number;
  /** Cuts, times that a fault was made, or inputs and sequences that were tried. */
  cuts: number;
  /** How often each invariant was checked, by its name: the things that it was checked on are counted. */
  checked: [string, number][];
  found: [string, number][];
  ms: number;
  error?: string;
};

export class Ledger {
  cuts = 0;
  readonly #of: Pick<Told, 'part' | 'store' | 'seed'>;
  readonly #checked = new Map<string, number>();
  readonly #found = new Map<string, number>();
  readonly #began = performance.now();

  constructor(of: Pick<Told, 'part' | 'store' | 'seed'>) {
    this.#of = of;
  }

  check(invariant: string, times = 1): void {
    this.#checked.set(invariant, (this.#checked.get(invariant) ?? 0) + times);
  }

  find(what: string, times = 1): void {
    this.#found.set(what, (this.#found.get(what) ?? 0) + times);
  }

  /** The highest of something. Its name begins with `longest` or `most`. */
  most(what: `longest ${string}` | `most ${string}`, value: number): void {
    this.#found.set(what, Math.max(this.#found.get(what) ?? 0, Math.round(value)));
  }

  /** Does the work and writes down what was counted, for `npm run prove`, also when it throws. */
  async keep(work: () => Promise<void>): Promise<void> {
    let error: string | undefined;
    try {
      await work();
    } catch (thrown) {
      error = (thrown as Error).message;
      throw thrown;
    } finally {
      const told: Told = {
        ...this.#of,
        cuts: this.cuts,
        checked: [...this.#checked],
        found: [...this.#found],
        ms: Math.round(performance.now() - this.#began),
        ...(error !== undefined && { error }),
      };
      const file = process.env.PROVE_RESULT;
      if (file !== undefined) appendFileSync(file, `${JSON.stringify(told)}\n`);
    }
  }
}
