/** Counts what a run of `npm run prove` did, and appends it as one line of JSON per test to the file PROVE_RESULT. */
import { appendFileSync } from 'node:fs';

/** The result of a part on a store. `error`: the invariant that did not hold. */
export type Told = {
  part: string;
  store: string;
  seed: number;
  /** Number of kills, faults, or tried inputs and sequences. */
  cuts: number;
  /** Number of checked items by name of the invariant. */
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

  /** Records the maximum of a value. Its name begins with `longest` or `most`. */
  most(what: `longest ${string}` | `most ${string}`, value: number): void {
    this.#found.set(what, Math.max(this.#found.get(what) ?? 0, Math.round(value)));
  }

  /** Runs the work and writes the result for `npm run prove`, also when the work throws. */
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
