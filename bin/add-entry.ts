/** Finds the address of a built-in platform for `agent-broker add`. */
import type { BuiltinName } from '../broker/platforms/builtin-names.ts';
import { placeOf as findPlace, NoSuchPlace, type Place } from '../broker/platforms/connect-ways.ts';
import { WrongUsage } from './failure.ts';

/** Calls the broker's `placeOf`. Throws WrongUsage in place of its error. */
export function placeOf(name: BuiltinName, url: string | undefined): Place {
  try {
    return findPlace(name, url);
  } catch (error) {
    if (error instanceof NoSuchPlace) throw new WrongUsage(`--base-url: ${error.message}.`);
    throw error;
  }
}
