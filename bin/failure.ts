/** The command was refused or failed: exit code 1. The message is for a person. */
export class CommandFailed extends Error {}

/** A request without a clear response: the broker may or may not have executed it. */
export class OutcomeUnknown extends CommandFailed {}

/** Wrong usage of a command: exit code 2. */
export class WrongUsage extends Error {}
