/** The state of an `input_required` result, which comes back with the answer to it: what the client resumes. It may be altered. */

export type RequestState = {
  approvalId: string | undefined;
  hash: string | undefined;
  /** When the link was given out, in milliseconds; NaN when it does not say. */
  at: number;
};

/** `hash`: of the call that is held, by hashOf. `at`: now, in milliseconds. */
export const writeState = (approvalId: string, hash: string, at: number): string => `${approvalId}.${hash}.${at}`;

export function readState(state: string | undefined): RequestState {
  const [approvalId, hash, at] = state?.split('.') ?? [];
  return { approvalId, hash, at: Number(at) };
}
