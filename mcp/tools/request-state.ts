/** The state of an `input_required` result, which comes back with the answer to it: what the client resumes. It may be altered. */

export type RequestState = { approvalId: string | undefined; hash: string | undefined };

/** `hash`: of the call that is held, by hashOf. */
export const writeState = (approvalId: string, hash: string): string => `${approvalId}.${hash}`;

export function readState(state: string | undefined): RequestState {
  const [approvalId, hash] = state?.split('.') ?? [];
  return { approvalId, hash };
}
