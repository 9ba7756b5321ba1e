/**
 * How much of what can be repeated without end a run of the tests does: inputs that are drawn, rows, agents, bytes. CI proves that a thing holds at a size that tells
 * a right program from a wrong one; `THOROUGH=1` (`npm run test:thorough`) proves it at the size that it is promised for.
 */
export const thorough = Boolean(process.env.THOROUGH);

/** `few` in an ordinary run, `many` in a thorough one. */
export const sized = (few: number, many: number): number => (thorough ? many : few);
