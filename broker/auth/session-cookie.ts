/** The owner's session in a browser: a cookie that scripts cannot read and other sites cannot send. */
import type { IncomingMessage } from 'node:http';

/** With the prefix a browser takes it from this host alone, over https alone (RFC 6265bis section 4.1.3.2). */
export const sessionCookieName = (baseUrl: string): string => (isSecure(baseUrl) ? '__Host-svc_owner' : 'svc_owner');

const isSecure = (baseUrl: string): boolean => baseUrl.startsWith('https:');

/** `Set-Cookie` for a session of `seconds`; 0 ends it. Secure wherever the broker is reached by https. */
export function sessionCookie(token: string, seconds: number, baseUrl: string): string {
  const secure = isSecure(baseUrl) ? '; Secure' : '';
  return `${sessionCookieName(baseUrl)}=${token}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`;
}

/** The session that the cookie carries, or undefined. */
export function readSessionCookie(request: IncomingMessage, baseUrl: string): string | undefined {
  return readCookie(request, sessionCookieName(baseUrl));
}

/** The names of all cookies, in their order. */
export const cookieNames = (request: IncomingMessage): string[] =>
  (request.headers.cookie ?? '').split(';').map((part) => part.trim().split('=', 1)[0] ?? '');

/** The first cookie of this name, or undefined. */
export function readCookie(request: IncomingMessage, wanted: string): string | undefined {
  for (const part of (request.headers.cookie ?? '').split(';')) {
    const [name, value] = part.trim().split('=', 2);
    if (name === wanted && value) return value;
  }
  return undefined;
}

/**
 * Why a browser's request is not taken for the console's own, in a sentence; undefined when it is. A cookie alone proves
 * nothing: `SameSite` knows no ports, so any program on the same host name could have it sent. So what changes something
 * needs a header that no form, image or link can send (OWASP, custom request header), and what the browser itself tells
 * of where the request comes from (Fetch Metadata, RFC 6454 section 7) must not contradict it.
 */
export function foreignRequest(request: IncomingMessage, baseUrl: string): string | undefined {
  const { headers, method } = request;
  const reads = method === 'GET' || method === 'HEAD';
  const site = headers['sec-fetch-site'];
  // `none`: typed into the address bar, which nobody else can do.
  if (site !== undefined && site !== 'same-origin' && !(reads && site === 'none'))
    return 'The browser says that another site makes this request with your session. Use the console itself.';
  const { origin } = headers;
  // One broker may be reached by several names: then by the very one that was asked.
  if (origin !== undefined && origin !== baseUrl && origin !== `${new URL(baseUrl).protocol}//${headers.host}`)
    return 'The browser says that a page from elsewhere makes this request with your session. Use the console itself.';
  if (!reads && headers['x-svc-csrf'] === undefined)
    return 'A request with a session cookie needs the header X-Svc-Csrf.';
  return undefined;
}
