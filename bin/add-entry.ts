/** Finds the address of a built-in platform for `agent-broker add`. */
import type { BuiltinName } from '../broker/platforms/builtin-names.ts';
import {
  locatePlatform as findPlace,
  type PlatformLocation,
  WrongPlatformAddress,
} from '../broker/platforms/connect-methods.ts';
import { WrongUsage } from './failure.ts';

/** Calls the broker's `placeOf`. Throws WrongUsage in place of its error. */
export function placeOf(name: BuiltinName, url: string | undefined): PlatformLocation {
  try {
    return findPlace(name, url);
  } catch (error) {
    if (error instanceof WrongPlatformAddress) throw new WrongUsage(`--base-url: ${error.message}.`);
    throw error;
  }
}
