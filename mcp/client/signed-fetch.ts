/** Requests over HTTP, each with a fresh token. `fetch` keeps connections alive between them. */
import { BrokerUnreachable, type Send } from './send.ts';

type Options = {
  /** Address of the broker, without a trailing slash. */
  url: string;
  /** What stands after `Bearer`, made anew for each request. */
  token: () => string;
  /** Sent with every request. */
  headers?: Readonly<Record<string, string>> | undefined;
  fetch?: typeof fetch | undefined;
};

/** Redirects are not followed: requests carry tokens. */
export function signedFetch({ url, token, headers = {}, fetch: fetchOver = fetch }: Options): Send {
  return async ({ method, path, headers: own = {}, body, signal }) => {
    const authorization = `Bearer ${token()}`;
    try {
      const response = await fetchOver(url + path, {
        method,
        redirect: 'manual',
        headers: {
          accept: 'application/json',
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
          ...own,
          authorization,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        ...(signal && { signal }),
      });
      return { status: response.status, headers: response.headers, text: await response.text() };
    } catch (error) {
      signal?.throwIfAborted();
      throw unreachable(url, error);
    }
  };
}

/** Before there is a connection, nothing can have been sent. */
const NEVER_CONNECTED = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]);

function unreachable(url: string, error: unknown): BrokerUnreachable {
  const cause = (error as { cause?: { code?: string; errors?: { code?: string }[] } }).cause;
  const code = cause?.code ?? cause?.errors?.[0]?.code ?? (error as Error).name;
  return new BrokerUnreachable(`The broker at ${url} does not answer (${code}).`, {
    maybeSent: !NEVER_CONNECTED.has(code),
  });
}
