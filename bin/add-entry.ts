/** Where `agent-broker add` finds a built-in platform. */
import type { BuiltinName } from '../broker/platforms/builtin-names.ts';
import { placeOf as findPlace, NoSuchPlace, type Place } from '../broker/platforms/connect-ways.ts';
import { WrongUsage } from './failure.ts';

/** As `placeOf` of the broker. Throws WrongUsage. */
export function placeOf(name: BuiltinName, url: string | undefined): Place {
  try {
    return findPlace(name, url);
  } catch (error) {
    if (error instanceof NoSuchPlace) throw new WrongUsage(`--base-url: ${error.message}.`);
    throw error;
  }
}
