/** The state of an `input_required` result, which the client sends back with its response. Untrusted. */

/** `id`: of the approval; or the token of the consent, which is part of the link, too. */
export type WaitsFor = { for: 'approval' | 'consent'; id: string };

export type RequestState = {
  for: WaitsFor['for'];
  id: string | undefined;
  hash: string | undefined;
  /** When the link was sent, in milliseconds; NaN when absent. */
  at: number;
};

const CONSENT = 'consent:';

/** `hash`: of the waiting call, by hashOf. `at`: now, in milliseconds. */
export const writeState = ({ for: what, id }: WaitsFor, hash: string, at: number): string =>
  `${what === 'consent' ? CONSENT : ''}${id}.${hash}.${at}`;

export function readState(state: string | undefined): RequestState {
  const [id, hash, at] = state?.split('.') ?? [];
  const isConsent = id?.startsWith(CONSENT) === true;
  return {
    for: isConsent ? 'consent' : 'approval',
    id: isConsent ? id?.slice(CONSENT.length) : id,
    hash,
    at: Number(at),
  };
}
