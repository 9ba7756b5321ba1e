/** The command was refused or failed: exit code 1. The message is for a person. */
export class CommandFailed extends Error {}

/** A request that was sent and not answered in so many words: the broker may have done what was asked, or not. */
export class OutcomeUnknown extends CommandFailed {}

/** The command was called wrongly: exit code 2. */
export class WrongUsage extends Error {}
