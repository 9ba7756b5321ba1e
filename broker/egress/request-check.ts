/** Rejects requests on which undici would throw, because a pool leaks a connection slot for each such request. */
import type { OutboundRequest, StreamRequest } from './outbound-request.ts';

const METHODS = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD']);

/** Set by undici from the URL and the body, or hop-by-hop (RFC 9110 §7.6.1). */
const SET_BY_UNDICI = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'upgrade',
  'expect',
  'te',
  'trailer',
  '__proto__',
]);

/** RFC 9110 §5.6.2 (token), in lower case. */
const NAME = /^[a-z0-9!#$%&'*+\-.^_`|~]+$/;
/** RFC 9110 §5.5 without obs-text and without leading and trailing spaces, so that the checked value is sent unchanged. */
const VALUE = /^(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?$/;
const PATH = /^\/[\x21-\x7e]*$/;

/** Returns a code for what is wrong with the request, or undefined. Contains no value, which may be a credential. */
export function requestProblem(request: OutboundRequest | StreamRequest): string | undefined {
  if (!METHODS.has(request.method)) return 'method';
  const { pathname, search, username, password } = request.url;
  if (username !== '' || password !== '') return 'userinfo';
  if (!PATH.test(pathname + search)) return 'path';
  if (request.body !== undefined && (request.method === 'GET' || request.method === 'HEAD')) return 'body';
  for (const [name, value] of Object.entries(request.headers)) {
    if (!NAME.test(name) || SET_BY_UNDICI.has(name)) return 'header_name';
    if (typeof value !== 'string' || !VALUE.test(value)) return 'header_value';
  }
  return undefined;
}

/** Whether a text is a valid header value as it is. */
export function isHeaderValue(text: string): boolean {
  return VALUE.test(text);
}
