/** On which store a part of what is drawn at random runs. */
import { STORES, type StoreKind } from '../world/stores.ts';
import { thorough } from '../world/thorough.ts';

/**
 * Whether a part runs on this store. Who names parts (PROVE_PART), or runs all thoroughly, gets each on every store; else a part runs on one of them, by the seed of
 * the run, and the one after it in the list on the next store.
 */
export const runsOn = (store: StoreKind, seed: number, at: number): boolean =>
  thorough || process.env.PROVE_PART !== undefined || STORES[(seed + at) % STORES.length] === store;
