/** Errors of recording. */

/** The audit row could not be stored. `sent` false: nothing was sent to the platform; true: the call may have been made. */
export class AuditUnavailable extends Error {
  readonly sent: boolean;
  constructor(sent: boolean, cause: unknown) {
    super(sent ? 'the outcome could not be recorded' : 'the decision could not be recorded', { cause });
    this.name = 'AuditUnavailable';
    this.sent = sent;
  }
}

/** The commit's result is unknown: a change, or a held call, may have been recorded and be in force. */
export class MaybeRecorded extends AuditUnavailable {
  constructor(cause: unknown) {
    super(true, cause);
  }
}
