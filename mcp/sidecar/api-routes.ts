/**
 * The part of the broker's API for agents that a run serves, so that its command can request access after a refusal and follow that request.
 * Only these requests, spelled as here, are served: other routes of the API act, and the command acts by `/proxy` and `/git` alone.
 */

const WAIT = String.raw`(?:\?wait=\d{1,3})?`;

const SERVED: readonly { method: string; target: RegExp; shown: string }[] = [
  { method: 'POST', target: /^\/v1\/access-request$/, shown: '/v1/access-request' },
  {
    method: 'GET',
    target: new RegExp(`^/v1/access-request/status/[A-Za-z0-9_-]{1,100}${WAIT}$`),
    shown: '/v1/access-request/status/<token>',
  },
  { method: 'GET', target: /^\/v1\/agent\/permissions$/, shown: '/v1/agent/permissions' },
  {
    method: 'GET',
    target: new RegExp(`^/v1/approvals/(?<approval>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})${WAIT}$`, 'i'),
    shown: '/v1/approvals/<id of a held call of this run>',
  },
];

/** The served routes as one text, for refusals. */
export const API_SERVED: string = SERVED.map(({ method, shown }) => `${method} ${shown}`).join(', ');

/** The held calls of one run, by the ids of their approvals. */
export type HeldCalls = { note(id: string): void; has(id: string): boolean };

/** Most held calls that are remembered; beyond that the oldest is dropped. */
const MAX_HELD = 10_000;

export function heldCalls(): HeldCalls {
  const ids = new Set<string>();
  return {
    note: (id) => {
      ids.add(id.toLowerCase());
      const [oldest] = ids;
      if (ids.size > MAX_HELD && oldest !== undefined) ids.delete(oldest);
    },
    has: (id) => ids.has(id.toLowerCase()),
  };
}

/**
 * Whether a request is served. `held`: the approvals of this run. Approvals of another run of the agent may be for another person or a
 * connection that this run may not use, so this command must not read them.
 */
export const isApiServed = (method: string, target: string, held: HeldCalls): boolean =>
  SERVED.some((one) => {
    const found = method === one.method ? one.target.exec(target) : null;
    const approval = found?.groups?.approval;
    return found !== null && (approval === undefined || held.has(approval));
  });
