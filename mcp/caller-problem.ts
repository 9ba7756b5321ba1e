/** Thrown when the configured caller cannot be used. The message says what is wrong and where, and never contains the caller. */
export class CallerProblem extends Error {}
