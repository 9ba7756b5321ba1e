/**
 * What a condition says where servers differ in what they read. A server may be strict with one name and lenient with the next, so a condition
 * is evaluated for each combination of the names that matter. Whether a comparison holds that servers make differently is unknown: an error,
 * which `&&`, `||`, `!`, `?:` and loops carry as CEL has it (language definition, "Logical Operators"), so that only a result that
 * depends on it is unknown.
 */
import { isCelError } from '@bufbuild/cel';

/** Combinations that are tried of one condition: as many as six names have. */
const MOST_COMBINATIONS = 64;

/** Whether each place where a name has two readings is read as a strict or as a lenient server does. */
export class Readings {
  /** Those that the evaluation met, in this order. */
  readonly #places = new Map<string, number>();
  #isLenient: boolean[] = [];
  #tried = 0;

  /** Before the first evaluation, in which each place is read strictly. */
  begin(): void {
    this.#places.clear();
    this.#isLenient = [];
    this.#tried = 1;
  }

  /** Whether the evaluation met any. */
  get hasPlaces(): boolean {
    return this.#places.size > 0;
  }

  /** How the evaluation that runs reads a place that has two readings. `place`: the same for the same name at the same path. */
  isLenient(place: string): boolean {
    const at = this.#places.get(place) ?? this.#places.size;
    this.#places.set(place, at);
    return this.#isLenient[at] ?? false;
  }

  /** Goes on to the next combination. @returns false when there is none. @throws Error when there are too many */
  next(): boolean {
    // An evaluation meets places in the same order until it reads one otherwise.
    const isLenient = Array.from(this.#places.values(), (at) => this.#isLenient[at] ?? false);
    while (isLenient.at(-1) === true) isLenient.pop();
    if (isLenient.length === 0) return false;
    if (++this.#tried > MOST_COMBINATIONS) throw new Error('the call has too many names that servers read differently');
    isLenient[isLenient.length - 1] = true;
    this.#isLenient = isLenient;
    this.#places.clear();
    return true;
  }
}

/** That servers differ in a comparison. */
class Unknown extends Error {}
const UNKNOWN = new Unknown('the values are of two types, and servers differ in whether they are equal');

/** Whether something holds, or `unknown`: servers differ. */
export type Truth = boolean | 'unknown';

/** @throws Unknown */
export function known(truth: Truth): boolean {
  if (truth === 'unknown') throw UNKNOWN;
  return truth;
}

/** Whether a result is an error because of such comparisons alone: it is true to one server, and false to another. */
export function isUnknown(error: unknown): boolean {
  if (error instanceof Unknown) return true;
  if (!isCelError(error)) return false;
  // Several errors are merged into one that has the others as its cause, and the message of the first (celErrorMerge).
  return Array.isArray(error.cause)
    ? error.message === UNKNOWN.message && error.cause.every(isUnknown)
    : isUnknown(error.cause);
}
