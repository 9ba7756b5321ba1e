/** Returns numbers from 0 (inclusive) to 1 (exclusive), deterministic by seed. */
export type Random = () => number;

/** mulberry32: small, and sufficient to choose a test's next step. */
export function makeRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
