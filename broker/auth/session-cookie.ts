/** The owner's session in a browser: a cookie that scripts cannot read and other sites cannot send. */
import type { IncomingMessage } from 'node:http';

/**
 * Returns the name of a cookie. With the `__Host-` prefix a browser accepts it only from this host and over https (RFC 6265bis section 4.1.3.2). Cookies
 * do not distinguish ports (RFC 6265 section 8.5), so the name contains the port: brokers on other ports of the host have cookies of their own.
 */
export function cookieNameAt(baseUrl: string, name: string): string {
  const { port } = new URL(baseUrl);
  return `${isSecure(baseUrl) ? '__Host-' : ''}${name}${port === '' ? '' : `_${port}`}`;
}

export const sessionCookieName = (baseUrl: string): string => cookieNameAt(baseUrl, 'svc_owner');

const isSecure = (baseUrl: string): boolean => baseUrl.startsWith('https:');

/** Returns `Set-Cookie` for a session of `seconds`; 0 deletes the cookie. Secure when the base URL is https. */
export function sessionCookie(token: string, seconds: number, baseUrl: string): string {
  const secure = isSecure(baseUrl) ? '; Secure' : '';
  return `${sessionCookieName(baseUrl)}=${token}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`;
}

/** Returns the session in the cookie, or undefined. */
export function readSessionCookie(request: IncomingMessage, baseUrl: string): string | undefined {
  return readCookie(request, sessionCookieName(baseUrl));
}

/** Returns the names of all cookies, in order. */
export const cookieNames = (request: IncomingMessage): string[] =>
  (request.headers.cookie ?? '').split(';').map((part) => part.trim().split('=', 1)[0] ?? '');

/** Returns the first cookie of this name, or undefined. */
export function readCookie(request: IncomingMessage, wanted: string): string | undefined {
  for (const part of (request.headers.cookie ?? '').split(';')) {
    const [name, value] = part.trim().split('=', 2);
    if (name === wanted && value) return value;
  }
  return undefined;
}

/**
 * CSRF check: returns why a browser's request is not accepted as the console's own; undefined when it is. A cookie alone proves
 * nothing: `SameSite` ignores ports, so a page on another port of the same host could have it sent. So state-changing
 * requests need a header that forms, images and links cannot send (OWASP, custom request header), and what the browser
 * reports about the origin (Fetch Metadata, RFC 6454 section 7) must not contradict it.
 */
export function foreignRequest(request: IncomingMessage, baseUrl: string): string | undefined {
  const foreign = foreignOrigin(request, baseUrl);
  if (foreign !== undefined) return foreign;
  if (!isRead(request) && request.headers['x-svc-csrf'] === undefined)
    return 'A request with a session cookie needs the header X-Svc-Csrf.';
  return undefined;
}

const isRead = ({ method }: IncomingMessage): boolean => method === 'GET' || method === 'HEAD';

/** Returns why the browser's headers show that a request does not come from a page of the console; undefined when they do not. */
export function foreignOrigin(request: IncomingMessage, baseUrl: string): string | undefined {
  const { headers } = request;
  const reads = isRead(request);
  const site = headers['sec-fetch-site'];
  // `none`: entered in the address bar, which another site cannot cause.
  if (site !== undefined && site !== 'same-origin' && !(reads && site === 'none'))
    return 'The browser reports that this request comes from another site (Sec-Fetch-Site). Use the console itself.';
  const { origin } = headers;
  // A broker may have several host names: then the origin has to match the requested host.
  if (origin !== undefined && origin !== baseUrl && origin !== `${new URL(baseUrl).protocol}//${headers.host}`)
    return 'The browser reports that this request comes from another origin (Origin). Use the console itself.';
  return undefined;
}

/** Whether the browser reports that a page of another site or host sent it here (Fetch Metadata). Not for an address that was entered, or opened from an app. */
export const isSentByOthers = ({ headers }: IncomingMessage): boolean =>
  headers['sec-fetch-site'] === 'cross-site' || headers['sec-fetch-site'] === 'same-site';

/**
 * Whether a browser's page or address bar sends the request (Fetch Metadata): a browser that opened a link with a token in it
 * would execute the response on the console's origin. Programs send none of these headers.
 */
export function isOfBrowser(request: IncomingMessage, baseUrl: string): boolean {
  const { headers } = request;
  const dest = headers['sec-fetch-dest'];
  return (
    headers['sec-fetch-mode'] === 'navigate' ||
    (dest !== undefined && dest !== 'empty') ||
    headers['service-worker'] !== undefined ||
    cookieNames(request).includes(sessionCookieName(baseUrl))
  );
}
