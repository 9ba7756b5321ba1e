/** The state of an `input_required` result, which the client sends back with its response. Untrusted. */

export type RequestState = {
  approvalId: string | undefined;
  hash: string | undefined;
  /** When the link was sent, in milliseconds; NaN when absent. */
  at: number;
};

/** `hash`: of the call that is held, by hashOf. `at`: now, in milliseconds. */
export const writeState = (approvalId: string, hash: string, at: number): string => `${approvalId}.${hash}.${at}`;

export function readState(state: string | undefined): RequestState {
  const [approvalId, hash, at] = state?.split('.') ?? [];
  return { approvalId, hash, at: Number(at) };
}
