/** A `fetch` for OAuth libraries on top of the guarded client, so that no library opens sockets of its own. */
import type { Outbound } from './dispatcher.ts';
import { type UnreachableCode, unreachable } from './unreachable.ts';

export type ProviderFetch = (
  url: string,
  options: { method: string; headers: Record<string, string>; body?: unknown },
) => Promise<Response>;

/** Metadata, key sets, tokens and claims are small. */
const MAX_BYTES = 512 * 1024;
const TIMEOUT_MS = 10_000;

/** The provider sent no complete response. The message is one of the fixed sentences of unreachable.ts, and `code` is the sentence's. */
export class ProviderUnreachable extends Error {
  readonly code: UnreachableCode | undefined;
  constructor(message: string, code?: UnreachableCode) {
    super(message);
    this.code = code;
  }
}

/**
 * Creates the fetch function. Redirects are not followed; answers larger than 512 KiB or slower than 10 s are errors.
 *
 * @param read names of response headers, in lower case, that are passed on besides the content type
 * @throws ProviderUnreachable (from the returned function) when there is no complete response
 */
export function providerFetch(outbound: Outbound, read: readonly string[] = []): ProviderFetch {
  const handedOn = ['content-type', ...read];
  return async (url, { method, headers, body }) => {
    const answer = await outbound.send({
      url: new URL(url),
      method,
      headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
      ...(body !== undefined && body !== null && { body: textOf(body) }),
      maxResponseBytes: MAX_BYTES,
      idleTimeoutMs: TIMEOUT_MS,
      totalTimeoutMs: TIMEOUT_MS,
    });
    if (answer.kind === 'unreachable') {
      const { code, cause, detail } = answer;
      throw new ProviderUnreachable(cause === undefined ? detail : `${detail} (${cause})`, code);
    }
    // The body is already decompressed, so content-encoding and content-length no longer apply.
    const told = handedOn.flatMap((name) => {
      const value = answer.headers[name];
      return typeof value === 'string' ? [[name, value] as const] : [];
    });
    return responseOf(answer.status, answer.body, Object.fromEntries(told));
  };
}

/** A body where none is allowed (205), or an invalid status, cannot be a `Response`: treated as no response. */
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
  throw new TypeError('request bodies of this type are not supported');
}
