/** Sending over HTTP through the guarded way out, and what an answer means. */
import { parseStrictJson } from '../../json/strict.ts';
import type { Enough } from '../egress/buffered-exchange.ts';
import type { Answer } from '../egress/dispatcher.ts';
import type { Sending, Sent } from './channel.ts';

/** An owner's phone can wait; a socket that never answers must not be kept. */
const TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 64 * 1024;
/** The longest that a channel may put us off. */
export const MAX_AFTER_MS = 3_600_000;

export type Post = {
  url: URL;
  headers: Readonly<Record<string, string>>;
  body: string | Buffer;
  method?: 'POST' | 'PUT' | 'PATCH';
  /** To a public address only, whatever the operator allows: for addresses that came from a browser. */
  publicOnly?: boolean;
  /** For all of it; 10 seconds unless told. */
  timeoutMs?: number;
  /** As of `OutboundRequest`. */
  enough?: Enough;
};

/** Sends once, follows no redirect, and reads at most 64 KiB of the answer. Never rejects. */
export function post(
  { outbound, channelId }: Pick<Sending, 'outbound' | 'channelId'>,
  { url, headers, body, method = 'POST', publicOnly = false, timeoutMs = TIMEOUT_MS, enough }: Post,
): Promise<Answer> {
  return outbound.send({
    url,
    method,
    headers: { 'user-agent': 'agent-broker', ...headers },
    body,
    // No socket is shared with calls of agents or with other channels.
    connectionKey: `channel ${channelId}`,
    family: channelId,
    publicOnly,
    maxResponseBytes: MAX_ANSWER_BYTES,
    idleTimeoutMs: timeoutMs,
    totalTimeoutMs: timeoutMs,
    ...(enough && { enough }),
  });
}

/**
 * What an answer means: any 2xx is success. `gone`: statuses with which the channel's protocol says that there is none any more.
 */
export function judge(answer: Answer, { gone = [], now }: { gone?: readonly number[]; now: number }): Sent {
  if (answer.kind === 'unreachable') return { kind: 'failed', why: answer.detail };
  const { status, headers } = answer;
  if (status < 300) return { kind: 'sent' };
  if (gone.includes(status)) return { kind: 'gone', why: `It answered ${status}: there is no such channel any more.` };
  if (status < 400) return { kind: 'failed', why: `It answered ${status}, a redirect; none is followed.` };
  const afterMs = retryAfter([headers['retry-after'] ?? ''].flat()[0] ?? '', now);
  return { kind: 'failed', why: `It answered ${status}.`, ...(afterMs !== undefined && { afterMs }) };
}

/** How long a channel puts us off with any status, in milliseconds; undefined: it does not say. */
export const askedToWait = (answer: Answer, now: number): number | undefined =>
  answer.kind === 'answer' ? retryAfter([answer.headers['retry-after'] ?? ''].flat()[0] ?? '', now) : undefined;

/** The members of a JSON answer; none where it is something else. */
export function answeredJson(answer: Answer): Readonly<Record<string, unknown>> {
  if (answer.kind !== 'answer') return {};
  const parsed = parseStrictJson(answer.body.toString('utf8'));
  const value = parsed.ok ? parsed.value : undefined;
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
}

/** `Retry-After`: seconds or a date (RFC 9110 section 10.2.3), in milliseconds from now. */
function retryAfter(text: string, now: number): number | undefined {
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), MAX_AFTER_MS);
}
