/** The command was refused or failed: exit code 1. The message is for a person. */
export class CommandFailed extends Error {}

/** The command was called wrongly: exit code 2. */
export class WrongUsage extends Error {}
