/** The command was refused or failed: exit code 1. The message is for a person. */
export class CommandFailed extends Error {}

/** A request without a clear response: the broker may or may not have executed it. */
export class OutcomeUnknown extends CommandFailed {}

/** Wrong usage of a command: exit code 2. */
export class WrongUsage extends Error {}

/** Returns a handler for `catch` that replaces a 404 of the broker by this message. */
export const whereMissing =
  (message: string) =>
  (error: unknown): never => {
    throw error instanceof RefusedByBroker && error.status === 404 ? new CommandFailed(message) : error;
  };

/** The broker refused the request, and did nothing. `code`: the error code, such as `already_decided`. */
export class RefusedByBroker extends CommandFailed {
  readonly status: number;
  readonly code: string;

  constructor(message: string, status: number, code: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}
