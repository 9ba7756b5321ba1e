/**
 * Sizes of repeatable tests: drawn inputs, rows, agents, bytes. CI uses sizes that distinguish a right program from a wrong one; `THOROUGH=1` (`npm
 * run test:thorough`) uses the promised sizes.
 */
export const thorough = Boolean(process.env.THOROUGH);

/** `few` in an ordinary run, `many` in a thorough one. */
export const sized = (few: number, many: number): number => (thorough ? many : few);
