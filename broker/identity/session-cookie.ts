/** The owner's session in a browser: a cookie that scripts cannot read and other sites cannot send. */
import type { IncomingMessage } from 'node:http';

const NAME = 'svc_owner';

/** `Set-Cookie` for a session of `seconds`; 0 ends it. Secure wherever the broker is reached by https. */
export function sessionCookie(token: string, seconds: number, baseUrl: string): string {
  const secure = baseUrl.startsWith('https:') ? '; Secure' : '';
  return `${NAME}=${token}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`;
}

/** The session that the cookie carries, or undefined. */
export function readSessionCookie(request: IncomingMessage): string | undefined {
  for (const part of (request.headers.cookie ?? '').split(';')) {
    const [name, value] = part.trim().split('=', 2);
    if (name === NAME && value) return value;
  }
  return undefined;
}

/** Whether the request carries the header that no other site's form, image or link can send (OWASP, custom header). */
export function hasCsrfHeader(request: IncomingMessage): boolean {
  return request.headers['x-svc-csrf'] !== undefined;
}
