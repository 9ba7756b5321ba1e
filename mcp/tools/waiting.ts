/** Waiting for a decision: one long poll after the other, with news for whoever asked to be told. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Answer } from '../client/agent-client.ts';
import type { ToolRequest } from './peer.ts';

/** A client gives up on a tool after 60 seconds, unless it says otherwise (docs/clients). */
export const MOST_WAIT_MS = 50_000;
const NEWS_EVERY_MS = 10_000;
const PAUSE_MS = 1_000;

type Waiting = { request: ToolRequest; endsAt: number; news: string; newsEveryMs?: number };

type Poll<T> = (waitSeconds: number) => Promise<Answer<T>>;

/**
 * Polls until the value is settled or `endsAt` (a moment in milliseconds) has come, and answers what it was last. `news` is
 * what the person reads meanwhile. What fails in between is tried again: a broker that restarts loses nothing. Throws the
 * reason of the request's signal when it is aborted.
 */
export async function waitFor<T>(
  poll: Poll<T>,
  isSettled: (value: T) => boolean,
  { request, endsAt, news, newsEveryMs = NEWS_EVERY_MS }: Waiting,
): Promise<Answer<T>> {
  const startedAt = Date.now();
  const tell = () => void request.progress(news, Math.round((Date.now() - startedAt) / 1000)).catch(() => {});
  tell();
  const timer = setInterval(tell, newsEveryMs);
  try {
    for (;;) {
      const left = endsAt - Date.now();
      const found = await poll(Math.max(0, Math.floor(left / 1000)));
      request.signal.throwIfAborted();
      if (found.ok ? isSettled(found.value) : !isPassing(found.error.code)) return found;
      if (endsAt - Date.now() < PAUSE_MS) return found;
      // An answer that came at once and settles nothing would otherwise be asked for again at once.
      await sleep(found.ok ? 50 : PAUSE_MS, undefined, { signal: request.signal });
    }
  } finally {
    clearInterval(timer);
  }
}

const PASSING = new Set(['unreachable', 'unexpected_answer', 'store_unavailable', 'internal_error', 'rate_limited']);
const isPassing = (code: string): boolean => PASSING.has(code);
