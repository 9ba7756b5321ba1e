/** Evaluates a condition for every way in which servers may read a call, within one budget. */
import type { Evaluated } from './compiled.ts';
import { EVALUATION_STEPS, type Meter, spend } from './values.ts';

/** The possible results of one or more evaluations. */
export type Results<Value> = readonly [Evaluated<Value>, ...Evaluated<Value>[]];

/**
 * Evaluates a condition once when the call has one reading, which is nearly always the case. All further evaluations together have the budget of one more.
 *
 * @param length of the source, by which further evaluations are charged: a short condition on a small call spends next to nothing on the meter
 * @returns the result for the call as it is written, unless that is unknown, with all other results for some server
 */
export function evaluateEach<Value>(
  meter: Meter,
  length: number,
  evaluateOnce: () => Results<Value>,
): Evaluated<Value> & { others?: readonly Evaluated<Value>[] } {
  const { readings } = meter;
  readings.begin();
  const [exactly, ...others] = budgeted(meter, evaluateOnce);
  if (others.length === 0 && !readings.hasPlaces) return exactly;
  budgeted(meter, () => {
    try {
      while (readings.next()) {
        spend(meter, length / 8);
        others.push(...evaluateOnce());
      }
    } catch (error) {
      others.push({ ok: false, error: error instanceof Error ? error.message : String(error) });
    }
  });
  const different = others.filter((one, i) => ![exactly, ...others.slice(0, i)].some((other) => isSame(one, other)));
  return different.length === 0 ? exactly : { ...exactly, others: different };
}

function budgeted<T>(meter: Meter, work: () => T): T {
  const budget = Math.min(EVALUATION_STEPS, meter.leftOfCall);
  meter.left = budget;
  const result = work();
  // The part of the request that exceeded the budget was not executed.
  meter.leftOfCall -= budget - Math.max(meter.left, 0);
  return result;
}

const isSame = <Value>(one: Evaluated<Value>, other: Evaluated<Value>) =>
  one.ok ? other.ok && one.value === other.value : !other.ok;
