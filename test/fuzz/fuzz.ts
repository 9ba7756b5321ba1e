/**
 * Runs a property of fast-check for a number of seconds, and reports how to reproduce a failure.
 * PROVE_PART, PROVE_SECONDS and PROVE_SEED set the parts, the seconds for each, and the seed of the inputs. PROVE_RUN selects a single input.
 */
import fc from 'fast-check';
import { Ledger } from '../prove/ledger.ts';
import type { StoreKind } from '../world/stores.ts';

/** Counts a case that occurred, by name. */
export type Count = (what: string) => void;

/** `reaches`: cases that must occur at least once, otherwise the property was not really tested. */
export type Fuzzed = {
  property: fc.IProperty<unknown> | fc.IAsyncProperty<unknown>;
  reaches: readonly string[];
};

export const SEED = Number(process.env.PROVE_SEED ?? Math.floor(Math.random() * 2 ** 32));
const RUN = process.env.PROVE_RUN;

/** After this many inputs all cases must have occurred. */
const ENOUGH = 100;
/** Time limit for shrinking a failing input. */
const SHRINK_MS = 20_000;

/** Returns the parts of a file to run. */
export const chosen = (parts: object): string[] =>
  Object.keys(parts).filter((part) => process.env.PROVE_PART?.split(',').includes(part) ?? true);
export const secondsOr = (seconds: number): number => Number(process.env.PROVE_SECONDS ?? seconds);

/** Mostly generates the first: if every part of an input could be wrong, hardly any input would be valid. */
export const usually = <T>(usual: fc.Arbitrary<T>, ...others: T[]): fc.Arbitrary<T> =>
  fc.oneof({ weight: 25, arbitrary: usual }, fc.constantFrom(...others));

/**
 * Tries inputs until the time is over. Throws the failure with the smallest input found.
 *
 * @param file path of the test file in the checkout
 */
export async function fuzz(
  { part, file, store, seconds }: { part: string; file: string; store: StoreKind; seconds: number },
  make: (count: Count) => Promise<Fuzzed> | Fuzzed,
): Promise<void> {
  const ledger = new Ledger({ part, store, seed: SEED });
  await ledger.keep(async () => {
    const reached = new Set<string>();
    const { property, reaches } = await make((what) => {
      reached.add(what);
      ledger.find(what);
    });
    const from = RUN === undefined ? {} : { path: RUN };
    const began = performance.now();
    const found = await check(property, {
      seed: SEED | 0,
      numRuns: RUN === undefined ? Number.MAX_SAFE_INTEGER : 1,
      endOnFailure: true,
      ...from,
      ms: seconds * 1000,
    });
    ledger.cuts = found.numRuns;
    if (found.failed) {
      const run = found.counterexamplePath?.split(':')[0] ?? '0';
      ledger.cuts = Number(run);
      const smallest = await check(property, { seed: SEED | 0, path: run, numRuns: 1, ms: SHRINK_MS });
      const again = `PROVE_PART=${part} PROVE_SEED=${SEED} PROVE_RUN=${run} TEST_STORE=${store} npx vitest run ${file}`;
      throw new Error(`${reasonOf(smallest.failed ? smallest : found)}\n\nAgain by: ${again}`);
    }
    const took = (performance.now() - began) / 1000;
    ledger.most('most per second', found.numRuns / took);
    const missing = found.numRuns >= ENOUGH ? reaches.filter((what) => !reached.has(what)) : [];
    if (missing.length > 0) throw new Error(`seed ${SEED}: ${found.numRuns} inputs in which never: ${missing.join()}`);
  });
}

/**
 * Runs for `ms` milliseconds and at least one input, and completes the last one: fast-check's own time limit abandons a run, which then continues
 * beside the next.
 */
function check(property: Fuzzed['property'], { ms, ...parameters }: fc.Parameters<unknown> & { ms: number }) {
  const until = performance.now() + ms;
  let runs = 0;
  const limited = Object.create(property, {
    run: {
      value: (value: unknown) =>
        runs++ > 0 && performance.now() > until ? new fc.PreconditionFailure(true) : property.run(value),
    },
  });
  return fc.check(limited as fc.IAsyncProperty<unknown>, parameters);
}

/** Returns the first failure and its input. */
function reasonOf(details: fc.RunDetails<unknown>): string {
  const { errorInstance, counterexample } = details;
  const why = errorInstance instanceof Error ? (errorInstance.stack ?? errorInstance.message) : String(errorInstance);
  return `${why}\n\nfor ${fc.stringify(counterexample)}`;
}
