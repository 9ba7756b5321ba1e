/** Pages for people and what they load, served with a Content-Security-Policy that allows nothing inline and no framing. */
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { gzipSync } from 'node:zlib';
import type { Reply } from './reply.ts';

/** What answers at a path. `read`: its bytes, always the same. */
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
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  // Asked for again each time, sent again only when it changed.
  'Cache-Control': 'no-cache',
};

/**
 * Answers with a file, or with 304 to whoever has it already (RFC 9110 section 13.1.2). `pictures`: the page may draw pictures
 * that stand in its style sheet. `forms`: it may have forms, which lead to this broker. `workerScope`: of a service worker, the path below which it works. `large`: sent compressed to whoever takes that; nothing secret is in it (CRIME, BREACH).
 */
export function pageReply(
  { body, type }: { body: Buffer; type: string },
  { pictures, forms, large, workerScope }: { pictures?: true; forms?: true; large?: true; workerScope?: string } = {},
): (headers: IncomingHttpHeaders) => Reply {
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  const headers = {
    'Content-Security-Policy': policy(pictures ? "'self' data:" : "'self'", forms ? "'self'" : "'none'"),
    ...HEADERS,
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
