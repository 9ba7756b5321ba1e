/** Filters and adds headers of a platform's answer, so that nothing in it can act on the console's origin. */
import { type Place, rewriteLinks } from './links.ts';

/** Headers that act on the origin, or on intermediaries; more by prefix below. */
const DROPPED = new Set(
  `alt-svc clear-site-data content-security-policy content-security-policy-report-only critical-ch
  cross-origin-embedder-policy cross-origin-opener-policy cross-origin-resource-policy nel origin-agent-cluster p3p
  permissions-policy proxy-authenticate refresh report-to reporting-endpoints service-worker-allowed set-cookie set-cookie2
  sourcemap strict-transport-security supports-loading-mode timing-allow-origin www-authenticate x-frame-options
  x-reproxy-url x-sourcemap`.split(/\s+/),
);
/**
 * The last ones are instructions of a server to the reverse proxy or shared cache in front of it (here: in front of the broker): another
 * address or file to answer with, and how long to cache an answer (nginx, Apache, lighttpd, LiteSpeed, Envoy; RFC 9213, Edge Architecture).
 */
const DROPPED_PREFIXES = `access-control- x-svc- sec- accept-ch expect-ct
  x-accel- x-sendfile x-lighttpd- x-litespeed- x-envoy- surrogate- cdn- cloudflare-cdn- edge-`.split(/\s+/);

/** Tells the client which rules masked the answer. */
export const maskedHeader = (rules: readonly string[] = []): Record<string, string> =>
  rules.length > 0 ? { 'X-Svc-Masked': rules.map(encodeURIComponent).join(', ') } : {};

/** Set on every answer, so that nothing in it can act on the console's origin. */
export const SANDBOX: Readonly<Record<string, string>> = {
  'Content-Security-Policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/**
 * Returns the headers of an answer for the client. `place`: maps the platform's URLs to /proxy.
 *
 * @param headers names in lower case, without hop-by-hop headers and any that held the credential
 */
export function answeredHeaders(
  headers: Readonly<Record<string, string | string[]>>,
  place: Place,
): Record<string, string | string[]> {
  const kept: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (DROPPED.has(name) || DROPPED_PREFIXES.some((prefix) => name.startsWith(prefix))) continue;
    const values = [value].flat().flatMap((one) => rewriteLinks(name, one, place) ?? []);
    if (values.length > 0) kept[name] = Array.isArray(value) ? values : (values[0] ?? '');
  }
  return { ...kept, 'cache-control': privateOnly(headers['cache-control']), ...SANDBOX };
}

/**
 * Returns the platform's `Cache-Control`, limited to the client's private cache. A shared cache in front of the broker would serve an
 * agent's answers to others: it need not know that the agent's token may be in another header than Authorization (RFC 9111 §3.5, §5.2.2.7).
 */
function privateOnly(value: string | string[] | undefined): string {
  const directives = [value ?? []].flat().join(',').match(DIRECTIVES) ?? [];
  if (directives.length === 0) return 'no-store';
  // Also with `no-store`: a cache that supports `must-understand` may store despite it (§5.2.2.3).
  return ['private', ...directives.filter((one) => !FOR_SHARED_CACHES.test(one))].join(', ');
}
const DIRECTIVES = /[^\s,"=]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s,"]*))?/gs;
const FOR_SHARED_CACHES = /^(?:public|private|s-maxage)(?:\s*=|$)/i;
