/** Sends HTTP requests of channels through the guarded egress, and interprets the answers. */
import { parseStrictJson } from '../../json/strict.ts';
import type { Enough } from '../egress/buffered-exchange.ts';
import type { Answer } from '../egress/dispatcher.ts';
import type { Sending, Sent } from './channel.ts';

/** Notices can wait and are retried; a socket that never answers must not be kept. */
const TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 64 * 1024;
/** The longest delay that a channel may request. */
export const MAX_AFTER_MS = 3_600_000;

export type Post = {
  url: URL;
  headers: Readonly<Record<string, string>>;
  body: string | Buffer;
  method?: 'POST' | 'PUT' | 'PATCH';
  /** Allows public addresses only, whatever the operator allows: for addresses that came from a browser. */
  publicOnly?: boolean;
  /** For the whole request; default 10 seconds. */
  timeoutMs?: number;
  /** See `OutboundRequest`. */
  enough?: Enough;
};

/** Sends one request, follows no redirect, and reads at most 64 KiB of the answer. Never rejects. */
export function post(
  { outbound, channelId }: Pick<Sending, 'outbound' | 'channelId'>,
  { url, headers, body, method = 'POST', publicOnly = false, timeoutMs = TIMEOUT_MS, enough }: Post,
): Promise<Answer> {
  return outbound.send({
    url,
    method,
    headers: { 'user-agent': 'agent-broker', ...headers },
    body,
    // Sockets are not shared with calls of agents or with other channels.
    connectionKey: `channel ${channelId}`,
    family: channelId,
    publicOnly,
    maxResponseBytes: MAX_ANSWER_BYTES,
    idleTimeoutMs: timeoutMs,
    totalTimeoutMs: timeoutMs,
    ...(enough && { enough }),
  });
}

/** Converts an answer into a result: any 2xx is success. `gone`: statuses that mean, in the channel's protocol, that it does not exist any more. */
export function judge(answer: Answer, { gone = [], now }: { gone?: readonly number[]; now: number }): Sent {
  if (answer.kind === 'unreachable') return { kind: 'failed', why: answer.detail };
  const { status, headers } = answer;
  if (status < 300) return { kind: 'sent' };
  if (gone.includes(status)) return { kind: 'gone', why: `It answered ${status}: this channel no longer exists.` };
  if (status < 400) return { kind: 'failed', why: `It answered ${status}, a redirect; none is followed.` };
  const afterMs = retryAfter([headers['retry-after'] ?? ''].flat()[0] ?? '', now);
  return { kind: 'failed', why: `It answered ${status}.`, ...(afterMs !== undefined && { afterMs }) };
}

/** Returns the `Retry-After` of an answer with any status, in milliseconds; undefined when there is none. */
export const askedToWait = (answer: Answer, now: number): number | undefined =>
  answer.kind === 'answer' ? retryAfter([answer.headers['retry-after'] ?? ''].flat()[0] ?? '', now) : undefined;

/** Returns the members of a JSON answer; none when it is something else. */
export function answeredJson(answer: Answer): Readonly<Record<string, unknown>> {
  if (answer.kind !== 'answer') return {};
  const parsed = parseStrictJson(answer.body.toString('utf8'));
  const value = parsed.ok ? parsed.value : undefined;
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
}

/** Parses `Retry-After`: seconds or a date (RFC 9110 section 10.2.3), in milliseconds from now. */
function retryAfter(text: string, now: number): number | undefined {
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), MAX_AFTER_MS);
}
