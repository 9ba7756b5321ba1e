import type { IncomingMessage } from 'node:http';

/**
 * The host name that a request is for, in lower case and without the port (RFC 9112 section 3.2): that of an absolute
 * target, else that of its Host header; empty when an HTTP/1.0 request has none. Undefined for what has no answer: no Host header
 * in HTTP/1.1, two of them, of which Node would silently take the first, or a target that is no URL.
 */
export function requestedHost(request: IncomingMessage): string | undefined {
  const raw = request.rawHeaders;
  let host: string | undefined;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i];
    if (name?.length !== 4 || name.toLowerCase() !== 'host') continue;
    if (host !== undefined) return undefined;
    host = raw[i + 1] ?? '';
  }
  const target = request.url ?? '/';
  if (!target.startsWith('/') && target !== '*') {
    if (!URL.canParse(target)) return undefined;
    host = new URL(target).host;
  }
  if (host === undefined && request.httpVersion !== '1.0') return undefined;
  return (host ?? '').replace(/:\d+$/, '').toLowerCase();
}
