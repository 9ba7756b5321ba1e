/** Serves pages for people and their files, with a Content-Security-Policy that allows no inline code and no framing. */
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { gzipSync } from 'node:zlib';
import type { Reply } from '../reply.ts';

/** A file served at a path. `read` returns the same bytes each time. */
export type Served = { path: string; summary: string; type: string; read: () => Buffer };

const policy = (images: string, forms: string): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    `img-src ${images}`,
    "manifest-src 'self'",
    "base-uri 'none'",
    `form-action ${forms}`,
    "frame-ancestors 'none'",
  ].join('; ');

const HEADERS = {
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
  // Clients revalidate each time, and download again only after a change.
  'Cache-Control': 'no-cache',
};

/**
 * Returns a handler that answers with a file, or with 304 if the client has it (RFC 9110 section 13.1.2). `pictures`: the page may use images
 * embedded in its style sheet. `forms`: it may contain forms that post to this broker. `workerScope`: the path below which a service worker is
 * active. `popup`: a page of another site that opened this one in a window keeps its handle of the window: it can see that the window was closed, and can
 * close it or lead it elsewhere, but reads nothing in it; browsers take the handle away otherwise (Cross-Origin-Opener-Policy). `large`: compressed for clients that accept it; must contain nothing secret (CRIME, BREACH).
 */
export function pageReply(
  { body, type }: { body: Buffer; type: string },
  {
    pictures,
    forms,
    popup,
    large,
    workerScope,
  }: { pictures?: true; forms?: true; popup?: boolean; large?: true; workerScope?: string } = {},
): (headers: IncomingHttpHeaders) => Reply {
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  const headers = {
    'Content-Security-Policy': policy(pictures ? "'self' data:" : "'self'", forms ? "'self'" : "'none'"),
    ...HEADERS,
    ...(!popup && { 'Cross-Origin-Opener-Policy': 'same-origin' }),
    ETag: etag,
    ...(large && { Vary: 'Accept-Encoding' }),
    ...(workerScope !== undefined && { 'Service-Worker-Allowed': workerScope }),
  };
  let compressed: Buffer | undefined;
  return ({ 'if-none-match': ifNoneMatch, 'accept-encoding': encodings }) => {
    if (ifNoneMatch?.includes(etag)) return { status: 304, headers };
    if (!large || !/\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:,|$))/.test(String(encodings ?? '')))
      return { status: 200, type, headers, body };
    compressed ??= gzipSync(body);
    return { status: 200, type, headers: { ...headers, 'Content-Encoding': 'gzip' }, body: compressed };
  };
}
