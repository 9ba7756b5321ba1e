/**
 * Why an agent does not come to be, or gets no key. In a transaction, undoes it. `gone`: the token is unknown, used or over,
 * or whom it is for takes no key any more; which of these, nobody is told.
 */
export class AgentRefused extends Error {
  readonly code: 'invalid_request' | 'forbidden' | 'conflict' | 'gone';
  constructor(code: AgentRefused['code'], detail: string) {
    super(detail);
    this.code = code;
  }
}

/** Why a change cannot be made, in words for whoever asked. In a transaction, undoes it. */
export class ChangeRefused extends Error {
  readonly code: 'invalid_request' | 'not_found' | 'conflict' | 'agent_has_key';
  constructor(code: ChangeRefused['code'], detail: string) {
    super(detail);
    this.code = code;
  }
}
