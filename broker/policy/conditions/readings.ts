/**
 * Evaluates conditions where servers differ in how they read a call. A server may be strict with one name and lenient with the next, so a condition is
 * evaluated for each combination of the names that matter. A comparison about which servers disagree is unknown: an error that `&&`, `||`, `!`, `?:` and
 * loops propagate as CEL defines (language definition, "Logical Operators"), so that only a result that depends on it is unknown.
 */
import { isCelError } from '@bufbuild/cel';

/** The limit of combinations that are tried of one condition: as many as six names have. */
const MAX_COMBINATIONS = 64;

/** Decides for each place where a name has two readings whether it is read strictly or leniently. */
export class Readings {
  /** The places that the evaluation read, in this order. */
  readonly #places = new Map<string, number>();
  #isLenient: boolean[] = [];
  #tried = 0;

  /** Resets the state before the first evaluation, in which each place is read strictly. */
  begin(): void {
    this.#places.clear();
    this.#isLenient = [];
    this.#tried = 1;
  }

  /** Whether the evaluation read any place with two readings. */
  get hasPlaces(): boolean {
    return this.#places.size > 0;
  }

  /** Whether the current evaluation reads a place leniently. `place`: the same text for the same name at the same path. */
  isLenient(place: string): boolean {
    const at = this.#places.get(place) ?? this.#places.size;
    this.#places.set(place, at);
    return this.#isLenient[at] ?? false;
  }

  /** Advances to the next combination. @returns false when there is none. @throws Error when there are too many */
  next(): boolean {
    // Evaluations read places in the same order up to the first place that is read differently.
    const isLenient = Array.from(this.#places.values(), (at) => this.#isLenient[at] ?? false);
    while (isLenient.at(-1) === true) isLenient.pop();
    if (isLenient.length === 0) return false;
    if (++this.#tried > MAX_COMBINATIONS) throw new Error('the call has too many names that servers read differently');
    isLenient[isLenient.length - 1] = true;
    this.#isLenient = isLenient;
    this.#places.clear();
    return true;
  }
}

/** Thrown when servers disagree about a comparison. */
class Unknown extends Error {}
const UNKNOWN = new Unknown('the values are of two types, and servers differ in whether they are equal');

/** The result of a comparison; `unknown` when servers disagree. */
export type Truth = boolean | 'unknown';

/** @throws Unknown */
export function known(truth: Truth): boolean {
  if (truth === 'unknown') throw UNKNOWN;
  return truth;
}

/** Whether a result is an error only because of such comparisons: it is true on one server, and false on another. */
export function isUnknown(error: unknown): boolean {
  if (error instanceof Unknown) return true;
  if (!isCelError(error)) return false;
  // Several errors are merged into one with the others as its cause, and the message of the first (celErrorMerge).
  return Array.isArray(error.cause)
    ? error.message === UNKNOWN.message && error.cause.every(isUnknown)
    : isUnknown(error.cause);
}
