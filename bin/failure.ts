/** The command was refused or failed: exit code 1. The message is for a person. */
export class CommandFailed extends Error {}

/** A request without a clear response: the broker may or may not have executed it. */
export class OutcomeUnknown extends CommandFailed {}

/** Wrong usage of a command: exit code 2. */
export class WrongUsage extends Error {}

/** For `catch`: these words where the broker has no such thing. */
export const whereMissing =
  (message: string) =>
  (error: unknown): never => {
    throw error instanceof RefusedByBroker && error.status === 404 ? new CommandFailed(message) : error;
  };

/** The broker refused, and did nothing. `code`: its error, such as `already_decided`. */
export class RefusedByBroker extends CommandFailed {
  readonly status: number;
  readonly code: string;

  constructor(message: string, status: number, code: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}
