/** The evaluation of a condition for every reading of a call that some server has, in one budget. */
import type { Evaluated } from './compiled-condition.ts';
import { EVALUATION_STEPS, type Meter, spend } from './condition-values.ts';

/** What one or more evaluations may come to. */
export type Results<Value> = readonly [Evaluated<Value>, ...Evaluated<Value>[]];

/**
 * Evaluates once where the call has one reading, which is nearly always so. All further evaluations together have the budget of one more.
 *
 * @param length of the source, by which further evaluations are paid for: a short one on a small call spends next to nothing on the meter
 * @returns what is said of the call as it is written, unless that is unknown, with all else that some server may come to
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
  // What was asked for beyond it was not done.
  meter.leftOfCall -= budget - Math.max(meter.left, 0);
  return result;
}

const isSame = <Value>(one: Evaluated<Value>, other: Evaluated<Value>) =>
  one.ok ? other.ok && one.value === other.value : !other.ok;
