/** Waits by long polling, also while the broker is restarted. */
import type { BrokerError } from './broker-error.ts';
import { pause } from './pause.ts';
import type { Answer } from './read-answers.ts';

/** Limit of the broker's long polls. */
export const MAX_WAIT_SECONDS = 50;
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 15_000;
/** How long a broker may be unavailable before its error is returned: longer than a restart, or a failover of its database. */
const OUTAGE_MS = 300_000;

/**
 * Polls until the value is final or until `endsAt` (time in milliseconds, or infinity), and returns the last answer. Errors that pass are retried for
 * five minutes. Throws the reason of the signal when it is aborted. `poll`: asks once, and waits for the given number of seconds at most.
 */
export async function pollUntil<T>(
  poll: (waitSeconds: number) => Promise<Answer<T>>,
  isFinal: (value: T) => boolean,
  { endsAt, signal }: { endsAt: number; signal?: AbortSignal | undefined },
): Promise<Answer<T>> {
  let failing: { since: number; pauseMs: number } | undefined;
  for (;;) {
    const askedAt = Date.now();
    const left = Math.max(0, Math.ceil((endsAt - askedAt) / 1000));
    const found = await poll(Math.min(left, MAX_WAIT_SECONDS));
    const now = Date.now();
    if ((found.ok && isFinal(found.value)) || now >= endsAt) return found;
    if (found.ok) {
      failing = undefined;
      continue;
    }
    failing ??= { since: askedAt, pauseMs: FIRST_PAUSE_MS };
    if (!isOutage(found.error) || now - failing.since >= OUTAGE_MS) return found;
    const wantedMs = Math.max(failing.pauseMs, (found.error.retryAfterSeconds ?? 0) * 1000);
    await pause(Math.min(wantedMs, endsAt - now), signal);
    failing.pauseMs = Math.min(failing.pauseMs * 2, MAX_PAUSE_MS);
  }
}

/** `broker_unreachable` is the answer of the sidecar of a run. */
const OUTAGES = new Set(['unreachable', 'broker_unreachable', 'store_unavailable', 'rate_limited']);
/** Statuses of a proxy in front of a broker that does not answer. */
const OF_PROXIES = new Set([502, 503, 504]);

/** Whether the error is one of a broker that is not available just now. */
const isOutage = ({ code, status = 0 }: BrokerError): boolean =>
  OUTAGES.has(code) || (code === 'unexpected_answer' && OF_PROXIES.has(status));
