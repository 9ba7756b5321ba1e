/** The configured caller cannot be used; the message says what is wrong and where, and nothing of the caller. */
export class CallerProblem extends Error {}
