/** Chooses the store that a randomised part runs on. */

import { thorough } from '../world/runner/thorough.ts';
import { STORES, type StoreKind } from '../world/stores.ts';

/**
 * Whether a part runs on this store. With named parts (PROVE_PART), or in a thorough run, every part runs on every store; otherwise a part runs
 * on one store, chosen by the seed of the run, and the next part in the list on the next store.
 */
export const runsOn = (store: StoreKind, seed: number, at: number): boolean =>
  thorough || process.env.PROVE_PART !== undefined || STORES[(seed + at) % STORES.length] === store;
