/** Waits for a decision by long polling, with progress notifications. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Answer } from '../client/read-answers.ts';
import type { ToolRequest } from './peer.ts';

/** Clients time out after 60 seconds by default (docs/clients). */
export const MAX_WAIT_MS = 50_000;
const PROGRESS_INTERVAL_MS = 10_000;
const PAUSE_MS = 1_000;
const MIN_PAUSE_MS = 50;

type Waiting = {
  request: ToolRequest;
  endsAt: number;
  news: string;
  newsEveryMs?: number;
  /** Pause after an answer that is not final, which may have arrived immediately. */
  pauseMs?: number;
};

type Poll<T> = (waitSeconds: number) => Promise<Answer<T>>;

/**
 * Polls until the value is final or until `endsAt` (time in milliseconds), and returns the last value. `news` is the progress
 * message. Errors are retried, so that a restart of the broker is harmless. Throws the reason of the request's signal when it
 * is aborted.
 */
export async function waitFor<T>(
  poll: Poll<T>,
  isSettled: (value: T) => boolean,
  { request, endsAt, news, newsEveryMs = PROGRESS_INTERVAL_MS, pauseMs = MIN_PAUSE_MS }: Waiting,
): Promise<Answer<T>> {
  const told = telling(request, news, newsEveryMs);
  told.now();
  try {
    for (;;) {
      const left = endsAt - Date.now();
      const found = await poll(Math.max(0, Math.round(left / 1000)));
      request.signal.throwIfAborted();
      if (found.ok ? isSettled(found.value) : !isPassing(found.error.code)) return found;
      if (endsAt - Date.now() < PAUSE_MS) return found;
      // Avoids a busy loop when a response is immediate but not final.
      await sleep(found.ok ? pauseMs : PAUSE_MS, undefined, { signal: request.signal });
    }
  } finally {
    told.stop();
  }
}

/** Runs the work of a request, with a progress notification every ten seconds that shows clients and proxies that the request is still running. */
export async function withNews<T>(request: ToolRequest, news: string, work: () => Promise<T>): Promise<T> {
  const told = telling(request, news, PROGRESS_INTERVAL_MS);
  try {
    return await work();
  } finally {
    told.stop();
  }
}

function telling(request: ToolRequest, news: string, everyMs: number): { now(): void; stop(): void } {
  const startedAt = Date.now();
  // The work of a cancelled request may go on, such as a write that was sent: nobody waits for it any more.
  const now = () => {
    if (request.signal.aborted) return;
    void request.progress(news, Math.round((Date.now() - startedAt) / 1000)).catch(() => {});
  };
  const timer = setInterval(now, everyMs);
  return { now, stop: () => clearInterval(timer) };
}

const PASSING = new Set(['unreachable', 'unexpected_answer', 'store_unavailable', 'internal_error', 'rate_limited']);
/** Whether an error is temporary, so that a retry may help. */
export const isPassing = (code: string): boolean => PASSING.has(code);
