/** `fetch` as OAuth libraries want it, through the guarded way out: so that no library opens a connection of its own. */
import type { Outbound } from './dispatcher.ts';
import { unreachable } from './unreachable.ts';

export type ProviderFetch = (
  url: string,
  options: { method: string; headers: Record<string, string>; body?: unknown },
) => Promise<Response>;

/** Metadata, key sets, tokens and claims are small; whoever sends more wants something else. */
const MOST_BYTES = 512 * 1024;
const PATIENCE_MS = 10_000;

/** The provider gave no answer. The message is one of the fixed sentences of this room. */
export class ProviderUnreachable extends Error {}

/**
 * Makes it. Redirects are not followed, answers larger than 512 KiB or slower than 10 s are errors.
 *
 * @param read names of headers, in lower case, that are handed on beside the type
 * @throws ProviderUnreachable (the function that it answers) when there is no whole answer
 */
export function providerFetch(outbound: Outbound, read: readonly string[] = []): ProviderFetch {
  const handedOn = ['content-type', ...read];
  return async (url, { method, headers, body }) => {
    const answer = await outbound.send({
      url: new URL(url),
      method,
      headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
      ...(body !== undefined && body !== null && { body: textOf(body) }),
      maxResponseBytes: MOST_BYTES,
      idleTimeoutMs: PATIENCE_MS,
      totalTimeoutMs: PATIENCE_MS,
    });
    if (answer.kind === 'unreachable')
      throw new ProviderUnreachable(answer.cause === undefined ? answer.detail : `${answer.detail} (${answer.cause})`);
    // The body is inflated already, so that most of what else is said of it is not true any more.
    const told = handedOn.flatMap((name) => {
      const value = answer.headers[name];
      return typeof value === 'string' ? [[name, value] as const] : [];
    });
    return responseOf(answer.status, answer.body, Object.fromEntries(told));
  };
}

/** A body where there may be none (205), or a status that there is not: what no `Response` can be is no answer. */
function responseOf(status: number, body: Buffer, headers: Record<string, string>): Response {
  try {
    return new Response(body.length === 0 ? null : new Uint8Array(body), { status, headers });
  } catch {
    throw new ProviderUnreachable(unreachable('broken_answer', true).detail);
  }
}

function textOf(body: unknown): string {
  if (typeof body === 'string') return body;
  if (body instanceof URLSearchParams) return body.toString();
  throw new TypeError('a body of this kind is not sent to identity providers');
}
