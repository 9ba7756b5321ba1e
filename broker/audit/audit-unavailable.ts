/** Errors of recording. */

/** The audit row could not be stored. Nothing was sent when `sent` is false; else the call may have been made. */
export class AuditUnavailable extends Error {
  readonly sent: boolean;
  constructor(sent: boolean, cause: unknown) {
    super(sent ? 'the outcome could not be recorded' : 'the decision could not be recorded', { cause });
    this.name = 'AuditUnavailable';
    this.sent = sent;
  }
}

/** Unknown whether a change, or a held call, was recorded: it may be in force. */
export class MaybeRecorded extends AuditUnavailable {
  constructor(cause: unknown) {
    super(true, cause);
  }
}
